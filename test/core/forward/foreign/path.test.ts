import { describe, expect, it } from 'vitest';
import { type ForwardingNetwork, forwardPaths } from '../../../../src/core/forward/foreign/path.ts';
import { dialled, network, options, peer, prefix, underlay } from '../../samples.ts';

const lan = prefix('192.168.50.0/24');
const self = peer(1, { type: 'connector', endpoint: dialled(1) });
const map = network([self, peer(2, { endpoint: dialled(2) })], { routes: [lan] });

/** The interfaces of the ways out, `in>out`. */
function linksOf(changes: Partial<ForwardingNetwork>, covering: Partial<ForwardingNetwork['underlay']> = {}): string[] {
  const paths = forwardPaths({ link: 'cpn0', map, self, underlay: { ...underlay, ...covering }, options, ...changes });
  return paths.filter(({ state }) => state === 'new').map(({ iif, oif, to }) => `${iif}>${oif} ${to}`);
}

describe('the paths through a connector', () => {
  it('lead to each route it is there to serve, and back', () => {
    const connected = [{ prefix: lan, link: 'eth1' }];
    expect(forwardPaths({ link: 'cpn0', map, self, underlay: { ...underlay, connected }, options })).toEqual([
      { iif: 'cpn0', oif: 'eth1', from: '10.77.0.0/24', to: '192.168.50.0/24', state: 'new' },
      { iif: 'eth1', oif: 'cpn0', from: '192.168.50.0/24', to: '10.77.0.0/24', state: 'established' },
    ]);
    expect(forwardPaths({ link: 'cpn0', map, self: { ...self, routes: [] }, underlay, options })).toEqual([]);
    expect(linksOf({ self: { ...self, withdrawn: [lan] } })).toHaveLength(1);
  });

  it('go by the most specific route of this host, else by parts of the range, else by its gateway', () => {
    const covering = {
      connected: [
        { prefix: prefix('192.168.0.0/16'), link: 'eth2' },
        { prefix: prefix('203.0.113.0/24'), link: 'eth0' },
      ],
      routed: [{ prefix: prefix('192.168.48.0/22'), link: 'eth3' }],
    };
    const wide = (route: string) => ({ map: { ...map, routes: [prefix(route)] } });
    expect(linksOf({}, covering)).toEqual(['cpn0>eth3 192.168.50.0/24']);
    const links = ['eth0', 'eth2', 'eth3'].map((name) => ({ name, kind: 'card' as const }));
    const parts = ['cpn0>eth2 192.0.0.0/8', 'cpn0>eth3 192.0.0.0/8'];
    expect(linksOf(wide('192.0.0.0/8'), { ...covering, links })).toEqual(parts);
    expect(linksOf(wide('192.0.0.0/8'), covering)).toEqual([...parts, 'cpn0>eth0 192.0.0.0/8']);
    expect(linksOf(wide('10.9.0.0/16'), covering)).toEqual(['cpn0>eth0 10.9.0.0/16']);
    expect(linksOf(wide('0.0.0.0/0'), covering)).toEqual(['cpn0>eth0 0.0.0.0/0']);
    expect(linksOf(wide('10.9.0.0/16'), { uplinks: [] })).toEqual(['cpn0>null 10.9.0.0/16']);
  });

  it('lead to the local prefix of a mapped route, and name the route', () => {
    const options = { maps: [{ route: lan, local: prefix('172.31.5.0/24') }] };
    expect(forwardPaths({ link: 'cpn0', map, self, underlay, options })).toEqual([
      { iif: 'cpn0', oif: 'eth1', from: '10.77.0.0/24', to: '172.31.5.0/24', route: lan, state: 'new' },
      { iif: 'eth1', oif: 'cpn0', from: '172.31.5.0/24', to: '10.77.0.0/24', route: lan, state: 'established' },
    ]);
  });

  it('lead from peer to peer where two of them have no endpoint, whether the connector relays now or not', () => {
    const hidden = { ...map, peers: [self, peer(2), peer(3)] };
    const relayed = 'cpn0>cpn0 10.77.0.0/24';
    expect(linksOf({ map: hidden })).toContain(relayed);
    expect(linksOf({ map: hidden, self: { ...self, withdrawn: [map.cidr] } })).toContain(relayed);
    expect(linksOf({ map: { ...map, peers: [self, peer(2)] } })).not.toContain(relayed);
  });
});
