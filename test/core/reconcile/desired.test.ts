import { describe, expect, it } from 'vitest';
import { presharedKeyOf } from '../../../src/core/crypto/network-secret.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { noForwarding } from '../../../src/core/forward/ingress.ts';
import { nameUnderlay } from '../../../src/core/health/path-mtu.ts';
import { allForwardingKey, ipv6Key } from '../../../src/core/host-state/sysctl-keys.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import { aliasOf, type DesiredInputs, withoutIpv6Rejection } from '../../../src/core/reconcile/desired.ts';
import type { RouteConstraints } from '../../../src/core/routing/guard.ts';
import {
  address,
  desireFor,
  dialled,
  keyPair,
  network,
  options,
  peer,
  prefix,
  underlay,
  usualConstraints,
} from '../samples.ts';

const connector = peer(1, { type: 'connector', endpoint: dialled(1) });
const laptop = peer(3, { type: 'admin_device' });
const office = network([connector, laptop]);
const lan = {
  ...usualConstraints,
  underlay: { ...underlay, connected: [{ prefix: prefix('192.168.50.0/24'), link: 'wlan0' }] },
};

describe('what a host should be', () => {
  it('has its address in the range of the network, so that only routes beyond it are needed', () => {
    const desired = desireFor(laptop, office);
    expect(desired.config.address).toEqual({ address: '10.77.0.3', length: 24 });
    expect(desired.routes).toEqual(['192.168.50.0/24']);
    expect(desired.report).toEqual([{ prefix: '192.168.50.0/24', via: 'peer-1', state: 'taken', reason: null }]);
  });

  it('leaves out one refused route, reports the reason, and keeps the rest', () => {
    const desired = desireFor(laptop, office, {}, lan);
    expect(desired.routes).toEqual([]);
    expect(desired.config.peers[0]?.allowedIps).toEqual(['10.77.0.0/24', '10.77.0.1/32']);
    expect(desired.report[0]).toMatchObject({
      state: 'refused',
      reason: 'overlaps 192.168.50.0/24, which this host is in (wlan0)',
    });
  });

  it('routes single addresses if the range of the network is refused', () => {
    const connected = [{ prefix: prefix('10.77.0.0/25'), link: 'eth1' }];
    const far = peer(200);
    const desired = desireFor(
      laptop,
      network([connector, laptop, far]),
      {},
      { ...usualConstraints, underlay: { ...underlay, connected } },
    );
    expect(desired.config.address.length).toBe(32);
    expect(desired.config.peers[0]?.allowedIps).toEqual(['10.77.0.200/32', '192.168.50.0/24']);
    expect(desired.routes).toEqual(['10.77.0.200/32', '192.168.50.0/24']);
    expect(desired.report[0]).toMatchObject({ prefix: '10.77.0.0/24', state: 'refused' });
  });

  it('forwards on a connector, and nowhere else', () => {
    const sysctls = (link: string) => desireFor(connector, office, { link }).sysctls;
    expect(sysctls('cpn0')).toEqual({ 'net.ipv4.conf.cpn0.rp_filter': '2' });
    expect(sysctls('wg.7')).toEqual({ 'net.ipv4.conf.wg/7.rp_filter': '2' });
    expect(desireFor(connector, office).firewall?.link).toBe('cpn0');
    expect(desireFor(laptop, office)).toMatchObject({ firewall: null, sysctls: {} });
  });

  it('forwards on a host that forwards for others only where packet rules can limit that', () => {
    const on = (hasNft: boolean, value = '1') => {
      const forwarding = { ...noForwarding, hasNft, sysctls: { [allForwardingKey]: value } };
      return desireFor(laptop, office, { forwarding, mapEnd: 5_000 });
    };
    expect([on(true), on(false), on(true, '0')].map(({ forwards }) => forwards)).toEqual([true, false, false]);
    expect(on(false).firewall).toBeNull();
    // Only a connector stops to serve with the age of its map.
    const names = on(true).firewall?.rules.map(({ name }) => name);
    expect(names).toContain('refuse-rest');
    expect(names).not.toContain('refuse-outdated');
  });

  it('prefers an address of a name to which this host has a route', () => {
    const map = network([peer(1, { type: 'connector', endpoint: parseEndpoint('cp.example.net:51820') }), laptop]);
    const [one, other] = [address('198.51.100.7'), address('198.51.100.8')] as const;
    const resolved = { 'cp.example.net': [one, other] };
    const endpoints = (...unreachable: (typeof one)[]) =>
      desireFor(laptop, map, { resolved, unreachable }).config.peers.map(({ endpoint }) => endpoint?.host);
    expect([endpoints(), endpoints(one), endpoints(other), endpoints(one, other)]).toEqual([
      [one],
      [other],
      [one],
      [one],
    ]);
  });

  it('writes the last resolved address of an endpoint that is a name, and none where it never resolved', () => {
    const map = network([peer(1, { type: 'connector', endpoint: parseEndpoint('cp.example.net:51820') }), laptop]);
    const resolved = { 'cp.example.net': [address('198.51.100.7'), address('198.51.100.8')] };
    expect(desireFor(laptop, map, { resolved }).config.peers[0]?.endpoint).toEqual({
      host: '198.51.100.7',
      port: 51820,
    });
    expect(desireFor(laptop, map).config.peers[0]?.endpoint).toBeNull();
  });

  it('shares a key of the network secret with each peer, in the place of one that the service gave', () => {
    const networkSecret = new Secret(Buffer.alloc(32, 7).toString('base64'));
    const given = { allowedIps: [prefix('10.77.0.0/24')], presharedKey: keyPair(9).privateKey, keepalive: null };
    const map = network([peer(1, { endpoint: dialled(1), given }), laptop]);
    const keyWith = (changes: Partial<DesiredInputs>) => desireFor(laptop, map, changes).config.peers[0]?.presharedKey;
    expect(keyWith({})).toBe(given.presharedKey);
    const shared = presharedKeyOf(networkSecret, 7, keyPair(1).publicKey, keyPair(3).publicKey);
    expect(keyWith({ networkSecret })?.reveal()).toBe(shared.reveal());
    // A new key pair comes with new keys for every pair.
    const renewed = presharedKeyOf(networkSecret, 7, keyPair(1).publicKey, keyPair(5).publicKey);
    expect(keyWith({ networkSecret, keyPair: keyPair(5) })?.reveal()).toBe(renewed.reveal());
  });

  it.each(['127.0.0.1', '169.254.169.254', '0.0.0.0', '224.0.0.1'])('dials no peer at %s', (host) => {
    const map = network([peer(1, { type: 'connector', endpoint: parseEndpoint(`${host}:51820`) }), laptop]);
    expect(desireFor(laptop, map).config.peers[0]?.endpoint).toBeNull();
  });

  it.each([
    [1500, 1420],
    [1400, 1320],
    [9000, 1420],
    [1300, 1280],
    [null, 1420],
  ])('fits the MTU to an underlay of %s', (underlayMtu, mtu) => {
    expect(
      desireFor(laptop, office, {}, { ...usualConstraints, underlay: { ...underlay, underlayMtu } }).config.mtu,
    ).toBe(mtu);
  });

  it('uses the MTU and the port that a person chose', () => {
    const chosen = { ...options, mtu: 1300, listenPort: 51821 };
    expect(desireFor(laptop, office, { options: chosen }).config).toMatchObject({ mtu: 1300, listenPort: 51821 });
  });
});

describe('a full tunnel', () => {
  const everything = prefix('0.0.0.0/0');
  const exit = network([connector, laptop], { routes: [everything, prefix('192.168.50.0/24')] });
  const nft = { ...noForwarding, hasNft: true, sysctls: { [ipv6Key]: '0' } };
  const desireFull = (
    changes: Partial<DesiredInputs> = {},
    on: Partial<RouteConstraints> = {},
    resolvers = underlay.resolvers,
  ) =>
    desireFor(laptop, exit, changes, {
      ...{ ...usualConstraints, allowed: [everything], underlay: { ...underlay, resolvers } },
      ...on,
    });
  const reasonWith = (resolvers: readonly string[], on: Partial<RouteConstraints> = {}) =>
    desireFull({}, on, resolvers.map(address)).report.find((each) => each.prefix === everything)?.reason;

  it('reaches outside the control planes, endpoints and ports of all networks', () => {
    const [own, other] = [address('2001:db8:a::1'), address('2001:db8:b::1')];
    const endpoints = [{ host: address('2001:db8:e::1'), port: 51820 }];
    const reached = { api: [other], endpoints, ports: [51821] };
    const { ipv6 } = desireFull({ forwarding: { ...nft, reached } }, { api: [own] });
    expect(ipv6?.exceptions?.prefixes.map((each) => each.prefix)).toEqual([`${own}/128`, `${other}/128`]);
    expect(ipv6?.exceptions).toMatchObject({ endpoints, ports: [51821] });
  });

  it('rejects IPv6 if the kernel has it and rules can be loaded, unless it is allowed outside', () => {
    const rejects = (changes: Partial<DesiredInputs>) => (desireFull(changes).ipv6?.exceptions ?? null) !== null;
    expect(rejects({ forwarding: nft })).toBe(true);
    expect(rejects({ forwarding: { ...nft, sysctls: {} } })).toBe(false);
    expect(rejects({ forwarding: { ...nft, hasNft: false } })).toBe(false);
    expect(rejects({ forwarding: nft, options: { ...options, allowIpv6Outside: true } })).toBe(false);
  });

  it('has neither rules nor exceptions of IPv6 once their rejection is given up', () => {
    const open = withoutIpv6Rejection(desireFull({ forwarding: nft }));
    expect(open.ipv6).toMatchObject({ exceptions: null, isThere: true });
    expect(open.firewall?.rules.some(({ chain }) => chain === 'outgoing' || chain === 'passing')).toBe(false);
    expect(open.firewall?.rules.length).toBeGreaterThan(0);
  });

  it.each<[string, resolvers: readonly string[], isOutside: boolean, on?: Partial<RouteConstraints>]>([
    ['outside', ['198.51.100.53'], true],
    ['in the range', ['10.77.0.53'], false],
    ['in an accepted route', ['192.168.50.53'], false, { tunnelPrefixes: inside('192.168.50.0/24') }],
    ['in an accepted route, and kept outside', ['192.168.50.53'], true, { isSeparate: () => true }],
    ['in the range, behind a local one', ['127.0.0.53', '10.77.0.53'], false],
    ['in the range, and another outside', ['10.77.0.53', '198.51.100.53'], true],
    ['unknown behind a local one', ['127.0.0.53'], true],
  ])('tells where DNS queries go: a resolver %s', (_, resolvers, isOutside, on) => {
    const outside = 'IPv6 and DNS queries to the resolver go outside the tunnel';
    expect(reasonWith(resolvers, on)).toBe(isOutside ? outside : 'IPv6 goes outside the tunnel');
  });

  it('has rules for the resolvers outside alone', () => {
    const resolvers = ['10.77.0.53', '198.51.100.53'].map(address);
    const exempted = desireFull({}, {}, resolvers).rules.flatMap(({ to }) => to ?? []);
    expect(exempted).toEqual(['198.51.100.53/32']);
  });

  function inside(text: string) {
    return { ...usualConstraints.tunnelPrefixes, present: [prefix(text)] };
  }
});

describe('a host', () => {
  it('keeps outside the resolvers in each of its routes, and reports them with the failure of a connector', () => {
    const routes = [prefix('192.168.50.0/24'), prefix('192.168.60.0/24')];
    const resolvers = ['192.168.50.53', '192.168.60.53'].map(address);
    const desired = desireFor(
      laptop,
      network([connector, laptop], { routes }),
      { failed: [{ peer: 1, back: true }], routeTable: '8350' },
      { ...usualConstraints, underlay: { ...underlay, resolvers }, isSeparate: () => true },
    );
    expect(desired.keptOutside.map((each) => each.address)).toEqual(resolvers);
    const trust = 'answers again, but is not trusted yet';
    expect(desired.report.map(({ reason }) => reason)).toEqual([
      `${trust}; 192.168.50.53 stays outside: a resolver`,
      `${trust}; 192.168.60.53 stays outside: a resolver`,
    ]);
  });

  it('forwards only from the interfaces to served routes of the family of the network', () => {
    const six = prefix('fd00:50::/64');
    const connected = [
      { prefix: prefix('192.168.50.0/24'), link: 'eth1' },
      { prefix: six, link: 'eth9' },
    ];
    const map = network([connector, laptop], { routes: [prefix('192.168.50.0/24'), six] });
    const on = { ...usualConstraints, underlay: { ...underlay, connected } };
    expect(desireFor(connector, map, {}, on).ingress.map(({ link }) => link)).toEqual(['eth1']);
  });

  it('uses the measured MTU of a path unless a person chose one', () => {
    const pathMtu = { mtu: 1300, peer: 1, underlay: nameUnderlay(underlay), measuredAt: '2030-01-01T00:00:00.000Z' };
    expect(desireFor(laptop, office, { pathMtu })).toMatchObject({ pathMtu, config: { mtu: 1300 } });
    const chosen = { ...options, mtu: 1400 };
    expect(desireFor(laptop, office, { pathMtu, options: chosen })).toMatchObject({
      pathMtu: null,
      config: { mtu: 1400 },
    });
  });

  it('takes no refused prefix of a wg-quick text, if the range is unknown', () => {
    const allowedIps = [prefix('10.77.0.0/24'), prefix('172.20.0.0/16')];
    const hub = peer(1, { endpoint: dialled(1), given: { allowedIps, presharedKey: null, keepalive: null } });
    const map = network([hub, laptop], { cidr: prefix('10.77.0.3/32'), routes: [] });
    const connected = [{ prefix: prefix('10.77.0.0/24'), link: 'eth1' }];
    const on = { ...usualConstraints, underlay: { ...underlay, connected } };
    expect(desireFor(laptop, map, {}, on).config.peers[0]?.allowedIps).toEqual(['172.20.0.0/16']);
  });

  it('writes the names that peers had before to the hosts file, and none without the option', () => {
    const labels = [{ peer: 1, labels: ['former'] }];
    expect(desireFor(laptop, office, { options: { ...options, hosts: true }, labels }).hosts).toContain(
      '10.77.0.1 peer-1.office.cpn.internal former.office.cpn.internal',
    );
    expect(desireFor(laptop, office, { labels }).hosts).toBeNull();
  });

  it('marks its interface with the id of the network, in characters of an alias', () => {
    const aliases = [7, 'net-7.a:b', 'a b/c', null].map((id) => aliasOf({ ...office, id }));
    expect(aliases).toEqual(['cpn:7', 'cpn:net-7.a:b', 'cpn:a_b_c', 'cpn:network']);
  });
});

describe('conflicting data of a network', () => {
  it('does not lead the address of one peer to another', () => {
    const dialledLaptop = peer(3, { type: 'admin_device', endpoint: dialled(3) });
    const map = network([connector, dialledLaptop, peer(5)], { routes: [prefix('10.77.0.3/32')] });
    const { config, report } = desireFor(peer(5), map);
    expect(config.peers.map(({ allowedIps }) => allowedIps)).toEqual([
      ['10.77.0.0/24', '10.77.0.1/32'],
      ['10.77.0.3/32'],
    ]);
    expect(report).toMatchObject([{ prefix: '10.77.0.3/32', state: 'refused' }]);
  });

  it('may have a peer listen at the address of another peer if the range is unknown', () => {
    const inside = peer(3, { endpoint: parseEndpoint('10.77.0.1:51820') });
    const self = peer(5, { endpoint: dialled(5) });
    const alone = network([connector, inside, self], { cidr: prefix('10.77.0.5/32') });
    expect(desireFor(self, alone).config.peers.map(({ endpoint }) => endpoint?.host)).toEqual([
      '203.0.113.1',
      '10.77.0.1',
    ]);
  });

  it('has no peer listen at the address of a peer: its packets would go into the tunnel again', () => {
    const inside = peer(3, { endpoint: parseEndpoint('10.77.0.1:51820') });
    const self = peer(5, { endpoint: dialled(5) });
    const { config } = desireFor(self, network([connector, inside, self]));
    expect(config.peers.map(({ endpoint }) => endpoint?.host ?? null)).toEqual(['203.0.113.1', null]);
  });
});
