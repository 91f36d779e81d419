import { describe, expect, it } from 'vitest';
import { findForwarded } from '../../../src/core/forward/forwarded-packets.ts';
import { covers } from '../../../src/core/net/cidr.ts';
import { network, peer, prefix } from '../samples.ts';

const edge = peer(2, { type: 'connector' });
const laptop = peer(3);
const office = network([edge, laptop]);
const lan = prefix('192.168.50.0/24');
const find = (routes: readonly string[], probes: { host: string; port: null }[] = []) =>
  findForwarded(office, edge, routes.map(prefix), probes);

describe('the packets by which a connector finds out what it forwards', () => {
  it('come from another member, and go to addresses of each route', () => {
    const found = find(['192.168.50.0/24', '10.9.9.9/32']);
    expect(found?.source).toBe(laptop.address);
    expect(found?.destinations.map(({ route }) => route)).toEqual([lan, '10.9.9.9/32']);
    for (const { route, addresses } of found?.destinations ?? []) {
      expect(addresses.length).toBeGreaterThan(0);
      expect(addresses.every((address) => covers(route, address))).toBe(true);
    }
  });

  it('go to the probe targets of a route where it has some', () => {
    const probes = ['192.168.50.7', '10.1.1.1', 'printer.example'].map((host) => ({ host, port: null }));
    expect(find(['192.168.50.0/24'], probes)?.destinations).toEqual([{ route: lan, addresses: ['192.168.50.7'] }]);
  });

  it('go to several addresses of the internet for a default route', () => {
    expect(find(['0.0.0.0/0'])?.destinations[0]?.addresses.length).toBeGreaterThan(2);
  });

  it('come from an address without a peer in a network of one', () => {
    const alone = findForwarded(network([edge]), edge, [lan], []);
    expect(alone?.source).not.toBe(edge.address);
    expect(covers(office.cidr, alone?.source ?? edge.address)).toBe(true);
  });

  it('are none where nothing of IPv4 is served', () => {
    expect(find([])).toBeNull();
    expect(find(['fd00:5::/64'])).toBeNull();
  });
});
