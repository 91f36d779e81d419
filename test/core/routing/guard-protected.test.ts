import { describe, expect, it } from 'vitest';
import type { Underlay } from '../../../src/core/host-state/actual.ts';
import { addressIn, familyOf, hostPrefix, rangeOf } from '../../../src/core/net/cidr.ts';
import { specialRanges } from '../../../src/core/net/special-ranges.ts';
import {
  findAddressConflict,
  findRefusal,
  judgeRoutes,
  type RouteConstraints,
} from '../../../src/core/routing/guard.ts';
import { locateOutside } from '../../../src/core/routing/reach-outside.ts';
import { address, network, peer, prefix, underlay, usualConstraints } from '../samples.ts';

const on = (changes: Partial<RouteConstraints>): RouteConstraints => ({ ...usualConstraints, ...changes });
const around = (changes: Partial<Underlay>): Underlay => ({ ...underlay, ...changes });
const lan = prefix('192.168.50.0/24');
const server = address('192.168.50.53');
const { range } = usualConstraints.tunnelPrefixes;

describe('a special range', () => {
  it('is as wide as its RFC says', () => {
    expect(specialRanges.map(([each]) => each)).toEqual([
      ...['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/4', '240.0.0.0/4'],
      ...['::/127', 'fe80::/10', 'ff00::/8', '64:ff9b::/96'],
    ]);
  });

  it.each(specialRanges.map(([each, kind]) => [each, kind]))('has no route, from end to end: %s', (each, kind) => {
    const { first, last } = rangeOf(prefix(each));
    for (const number of [first, last]) {
      const end = addressIn(familyOf(prefix(each)), number);
      expect(findRefusal(hostPrefix(end), usualConstraints)).toBe(`overlaps ${kind} addresses`);
      expect(findAddressConflict(end, usualConstraints, [])).toBe(`overlaps ${kind} addresses`);
    }
  });
});

describe('a route that shares addresses with another network', () => {
  it.each([
    ['all of its addresses', '10.78.0.0/16'],
    ['some of them', '10.78.5.0/24'],
    ['one of them', '10.78.0.1/32'],
    ['all of them and more', '10.64.0.0/11'],
  ])('is refused with %s', (_, text) => {
    const taken = [{ prefix: prefix('10.78.0.0/16'), by: 'network lab (cpn1)' }];
    expect(findRefusal(prefix(text), on({ taken }))).toBe('overlaps 10.78.0.0/16 of network lab (cpn1)');
    expect(findRefusal(prefix('10.79.0.0/16'), on({ taken }))).toBeNull();
  });

  it.each(['fd78:0:5::/64', 'fd78::/32', 'fd78::/24'])('is refused in IPv6 too: %s', (text) => {
    const taken = [{ prefix: prefix('fd78::/32'), by: 'network lab (cpn1)' }];
    expect(findRefusal(prefix(text), on({ taken }))).toBe('overlaps fd78::/32 of network lab (cpn1)');
  });
});

describe('a protected address', () => {
  it('is also a server that a local stub queries', () => {
    expect(findRefusal(lan, on({ stubResolvers: [server] }))).toBe(`covers a resolver (${server})`);
    const tunnelPrefixes = { ...usualConstraints.tunnelPrefixes, present: [lan] };
    expect(findRefusal(lan, on({ stubResolvers: [server], tunnelPrefixes }))).toBeNull();
  });

  it.each([
    [false, 'the control plane'],
    [true, 'the proxy to the control plane'],
  ])('is named as what the host dials (proxied: %s)', (isProxied, name) => {
    const api = [server];
    expect(findRefusal(lan, on({ api, isProxied }))).toBe(`covers ${name} (${server})`);
    expect(findAddressConflict(server, on({ api, isProxied }), [])).toBe(`covers ${name} (${server})`);
  });

  it('that is a resolver and an SSH client stays outside as a resolver', () => {
    const sshClients = [{ address: server, local: address('203.0.113.22') }];
    const separate = { isSeparate: () => true, underlay: around({ resolvers: [server] }), sshClients };
    expect(judgeRoutes(on(separate)).findOutside(lan)).toEqual([{ address: server, what: 'a resolver' }]);
  });

  it('that the host reaches in a narrower subnet of its own needs no exception from the route', () => {
    const inLan = { prefix: prefix('192.168.50.32/27'), link: 'eth1' };
    const findOutside = (connected: Underlay['connected']) =>
      judgeRoutes(on({ isSeparate: () => true, underlay: around({ connected, resolvers: [server] }) })).findOutside(
        lan,
      );
    expect(findOutside([inLan])).toEqual([]);
    expect(findOutside([])).toEqual([{ address: server, what: 'a resolver' }]);
  });

  it('in the range of the network is none where a person lets the range through', () => {
    const connected = [{ prefix: prefix('10.77.0.0/25'), link: 'eth1' }];
    const inRange = { underlay: around({ connected, resolvers: [address('10.77.0.200')] }) };
    const one = prefix('10.77.0.200/32');
    expect(findRefusal(one, on(inRange))).toBe('covers a resolver (10.77.0.200)');
    expect(findRefusal(one, on({ ...inRange, allowed: [range] }))).toBeNull();
  });
});

it('a prefix that the host routes by two interfaces leads to the first of them', () => {
  const routed = ['eth1', 'eth2'].map((link) => ({ prefix: lan, link }));
  expect(findRefusal(lan, on({ underlay: around({ routed }) }))).toBe('is already routed to eth1 on this host');
});

describe('the endpoint of a peer', () => {
  const at = (host: string) => ({ host, port: 51820 });
  const peers = [peer(1), peer(2)];
  const locate = (host: string, map = network(peers)) => locateOutside({ map, resolved: {} })(at(host));

  it.each(['127.0.0.1', '0.0.0.0', '169.254.1.1', '224.0.0.1', '255.255.255.255', '::1', 'fe80::1'])(
    'is none where no peer can listen: %s',
    (host) => expect(locate(host)).toBeNull(),
  );

  it('is none inside the tunnel, unless the range of the network is not known', () => {
    expect(locate('10.77.0.2')).toBeNull();
    expect(locate('10.77.0.9')).toEqual(at('10.77.0.9'));
    expect(locate('10.77.0.2', network(peers, { cidr: prefix('10.77.0.1/32') }))).toEqual(at('10.77.0.2'));
    expect(locate('203.0.113.9')).toEqual(at('203.0.113.9'));
  });
});
