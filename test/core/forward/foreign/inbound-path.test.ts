import { describe, expect, it } from 'vitest';
import { type InboundInputs, inboundPaths } from '../../../../src/core/forward/foreign/inbound-path.ts';
import { parseEndpoint } from '../../../../src/core/net/endpoint.ts';
import { address, bare, prefix } from '../../samples.ts';

const underlay: InboundInputs['underlay'] = {
  ...bare.underlay,
  addresses: [address('203.0.113.5'), address('192.168.1.5')],
  connected: [
    { prefix: prefix('203.0.113.0/24'), link: 'eth0' },
    { prefix: prefix('192.168.1.0/24'), link: 'eth1' },
  ],
  uplinks: ['eth0'],
  links: [
    { name: 'eth0', kind: 'card' },
    { name: 'eth1', kind: 'card' },
  ],
};
const ways = (endpoint: string | null, changes: Partial<InboundInputs> = {}) =>
  inboundPaths({
    self: { endpoint: endpoint === null ? null : parseEndpoint(endpoint) },
    device: { listenPort: 51820 },
    listenPort: 51820,
    underlay,
    ...changes,
  }).map(({ iif, to, port, isRedirected }) => [iif, to, port, isRedirected]);

describe('the inbound paths of a session', () => {
  it('are none where they do not dial this host over IPv4, or its port is unknown', () => {
    expect(ways(null)).toEqual([]);
    expect(ways('[2001:db8::5]:51820')).toEqual([]);
    expect(ways('203.0.113.5:51820', { device: null, listenPort: null })).toEqual([]);
  });

  it('lead to the address of the endpoint, by the interface in its subnet', () => {
    expect(ways('203.0.113.5:51820')).toEqual([['eth0', '203.0.113.5/32', 51820, false]]);
    expect(ways('192.168.1.5:51820')).toEqual([['eth1', '192.168.1.5/32', 51820, false]]);
    expect(ways('203.0.113.5:51820', { device: null })).toHaveLength(1);
  });

  it('lead anywhere by the default routes where the endpoint is a router, or a name', () => {
    expect(ways('198.51.100.9:51820')).toEqual([['eth0', '0.0.0.0/0', 51820, false]]);
    expect(ways('edge.example.net:51820')).toEqual([['eth0', '0.0.0.0/0', 51820, false]]);
    const island = { ...underlay, uplinks: [] };
    expect(ways('198.51.100.9:51820', { underlay: island }).map(([iif]) => iif)).toEqual(['eth0', 'eth1']);
  });

  it('lead to the chosen listen port while the interface still has another one', () => {
    expect(ways('203.0.113.5:51820', { device: { listenPort: 40000 } })).toEqual([
      ['eth0', '203.0.113.5/32', 51820, false],
    ]);
  });

  it('are one for each interface in the subnet of the address, and for each default route', () => {
    const wifi = { prefix: prefix('203.0.113.0/24'), link: 'wlan0' };
    const twice = { ...underlay, connected: [...underlay.connected, wifi, wifi], uplinks: ['eth0', 'wlan0'] };
    const interfaces = (endpoint: string) => ways(endpoint, { underlay: twice }).map(([iif]) => iif);
    expect(interfaces('203.0.113.5:51820')).toEqual(['eth0', 'wlan0']);
    expect(interfaces('edge.example.net:51820')).toEqual(['eth0', 'wlan0']);
  });

  it('lead to the listen port, also where a router or a rule maps another one to it', () => {
    expect(ways('203.0.113.5:443')).toEqual([['eth0', '203.0.113.5/32', 51820, undefined]]);
    expect(ways('203.0.113.5:51820', { listenPort: null, device: { listenPort: 40000 } })).toEqual([
      ['eth0', '203.0.113.5/32', 40000, undefined],
    ]);
  });
});
