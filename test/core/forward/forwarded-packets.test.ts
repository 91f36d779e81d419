import { describe, expect, it } from 'vitest';
import { findForwarded } from '../../../src/core/forward/forwarded-packets.ts';
import { covers } from '../../../src/core/net/cidr.ts';
import { address, network, peer, prefix } from '../samples.ts';

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

  it('come from a member with an address of IPv4, and never from the connector itself', () => {
    const six = peer(4, { address: address('fd00::4') });
    expect(findForwarded(network([edge, six, laptop]), edge, [lan], [])?.source).toBe(laptop.address);
    expect(covers(office.cidr, findForwarded(network([edge, six]), edge, [lan], [])?.source ?? six.address)).toBe(true);
  });

  it.each([
    ['10.77.0.0/30', '10.77.0.1', '10.77.0.2'],
    ['10.77.0.0/30', '10.77.0.2', '10.77.0.1'],
    ['10.77.0.0/31', '10.77.0.1', null],
    ['10.77.0.1/32', '10.77.0.1', null],
  ])('come from another address of %s than %s, if there is one', (range, own, other) => {
    const alone = { ...edge, address: address(own) };
    const found = findForwarded(network([alone], { cidr: prefix(range) }), alone, [lan], []);
    expect(found?.source ?? null).toBe(other);
  });

  it.each([
    ['192.168.50.7/32', ['192.168.50.7']],
    ['192.168.50.0/30', ['192.168.50.0']],
    ['192.168.50.0/29', ['192.168.50.5', '192.168.50.6']],
    ['192.168.50.0/28', ['192.168.50.9', '192.168.50.14']],
    ['192.168.50.0/24', ['192.168.50.129', '192.168.50.254']],
  ])('go to these addresses of %s: neither the first nor the last of a wide one', (route, addresses) => {
    expect(find([route])?.destinations).toEqual([{ route, addresses }]);
  });

  it.each(['0.0.0.0/0', '0.0.0.0/1', '128.0.0.0/1'])('go to no probe target for %s, which is no LAN', (route) => {
    const probes = ['10.1.1.1', '192.168.50.7'].map((host) => ({ host, port: null }));
    for (const { addresses } of find([route], probes)?.destinations ?? []) {
      expect(addresses.length).toBeGreaterThan(1);
      expect(addresses).not.toContain('10.1.1.1');
      expect(addresses).not.toContain('192.168.50.7');
    }
  });

  it('are none where nothing of IPv4 is served', () => {
    expect(find([])).toBeNull();
    expect(find(['fd00:5::/64'])).toBeNull();
  });
});
