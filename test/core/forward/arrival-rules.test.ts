import { describe, expect, it } from 'vitest';
import { expiryRules } from '../../../src/core/forward/deadline-rules.ts';
import { type HostRulesInputs, hostRules } from '../../../src/core/forward/host-rules.ts';
import { isReturnPathRule } from '../../../src/core/forward/return-path-rules.ts';
import type { SshClient, Underlay } from '../../../src/core/host-state/actual.ts';
import { maskPrefix } from '../../../src/core/net/cidr.ts';
import { address, network, peer, prefix, underlay } from '../samples.ts';

const [lan, annex, everything] = ['192.168.50.0/24', '192.168.60.0/24', '0.0.0.0/0'].map(prefix) as [
  never,
  never,
  never,
];
const server = peer(3);
const connector = peer(1, { type: 'connector', routes: [lan] });
const map = network([connector, server], { routes: [lan, annex] });
const covering: Underlay = {
  ...underlay,
  connected: [
    ...underlay.connected,
    { prefix: lan, link: 'eth1' },
    { prefix: prefix('172.18.0.0/16'), link: 'docker0' },
  ],
  routed: [],
  links: [...underlay.links, { name: 'docker0', kind: 'bridge', isInternal: true }],
};

/** The rules for arriving packets as nft gets them, without their comments; of a host that forwards nothing by default. */
function textsOf(changes: Partial<HostRulesInputs> = {}): string[] {
  const { self = server } = changes;
  const options = { masquerade: true, acceptRoutes: true, maps: [] };
  const forwards = self.type === 'connector';
  const given = { link: 'cpn0', map, self, options, relayedPeers: [], underlay: covering, ingress: [], routes: [] };
  const none = { vrf: undefined, others: [], ipv6: null, sessions: [], deadlines: [], takesSourceRoutes: false };
  const { rules } = hostRules({ ...given, forwards, ...none, ...changes });
  return rules
    .filter(({ chain }) => chain === 'arriving' || chain === 'redirected')
    .map(({ chain, text }) => (chain === 'arriving' ? text : `${chain}: ${text}`));
}

const others = 'ip daddr != { 10.77.0.1/32, 192.168.50.0/24 } fib daddr type local drop';

describe('the rules for arriving packets', () => {
  it('of a host that forwards nothing track no connection', () => {
    expect(textsOf()).toEqual([
      'ip daddr 10.77.0.3 iifname != { "cpn0", "lo", "docker0" } drop',
      'iifname "cpn0" ip daddr != { 10.77.0.3/32, 224.0.0.0/4, 255.255.255.255/32, 10.77.0.255/32 } drop',
      'iifname "cpn0" ip6 daddr != ff00::/8 drop',
    ]);
    expect(textsOf().join()).not.toContain('ct ');
  });

  it('of a connector name each LAN of an interface once, without what a wider one contains', () => {
    const wide = prefix('192.168.0.0/16');
    const serving = peer(1, { type: 'connector', routes: [wide, lan, annex] });
    const nested = { ...map, routes: [wide, lan, annex], peers: [serving, server] };
    const connected = [wide, lan, annex].map((each) => ({ prefix: each, link: 'eth1' }));
    const texts = textsOf({ self: serving, map: nested, underlay: { ...covering, connected } });
    expect(texts.filter((text) => text.startsWith('iifname "eth1"'))).toEqual([
      'iifname "eth1" ip daddr 10.77.0.1 ip saddr != 192.168.0.0/16 drop',
    ]);
  });

  it('of a connector in a VRF name its other addresses, if it has any', () => {
    const inVrf = (addresses: readonly string[]) =>
      textsOf({ self: connector, vrf: 'red', underlay: { ...covering, addresses: addresses.map(address) } });
    const local = 'ip daddr != { 10.77.0.1/32, 192.168.50.0/24 }';
    expect(inVrf(['203.0.113.22', '2001:db8::22'])).toContain(
      `iifname "cpn0" ct direction original ${local} ip daddr 203.0.113.22/32 drop`,
    );
    for (const none of [[], ['2001:db8::22']]) {
      expect(inVrf(none).filter((text) => text.includes(local) && !text.startsWith('redirected'))).toEqual([]);
      expect(inVrf(none)[0]).toContain('"red"');
    }
  });

  it('refuse source routes where the kernel takes them, before all others', () => {
    expect(textsOf({ takesSourceRoutes: true }).slice(0, 2)).toEqual([
      'ip option lsrr exists drop',
      'ip option ssrr exists drop',
    ]);
  });

  it('of a connector let in what it serves, by the interface of its route, and answers', () => {
    expect(textsOf({ self: connector })).toEqual([
      'ip daddr 10.77.0.1 iifname != { "cpn0", "lo", "docker0", "eth1" } drop',
      'iifname "eth1" ip daddr 10.77.0.1 ip saddr != 192.168.50.0/24 drop',
      `iifname "cpn0" ct direction original ${others}`,
      `iifname "cpn0" ct state { invalid, untracked } ${others}`,
      'redirected: iifname "cpn0" ct direction original ct status dnat ct original ip daddr != { 10.77.0.1/32, 192.168.50.0/24 } drop',
      'iifname "cpn0" ct direction original ip6 daddr != ff00::/8 drop',
      'iifname "cpn0" ct state { invalid, untracked } ip6 daddr != ff00::/8 drop',
    ]);
  });

  it('of a connector of a default route open none of its addresses, and no private address that is redirected', () => {
    const self = { ...connector, routes: [lan, everything] };
    const texts = textsOf({ self, map: network([self], { routes: [lan, everything] }) });
    expect(texts).toContain(`iifname "cpn0" ct direction original ${others}`);
    expect(texts.join('\n')).toMatch(/^redirected: .* ct original ip daddr \{ 10\.0\.0\.0\/8, .* \} drop$/m);
    // The interfaces of the default route stay closed.
    expect(texts[0]).toBe('ip daddr 10.77.0.1 iifname != { "cpn0", "lo", "docker0", "eth1" } drop');
  });

  it('let in a served LAN that is inside this host from any source', () => {
    const self = { ...connector, routes: [prefix('172.18.0.0/16')] };
    const texts = textsOf({ self, map: network([self], { routes: [prefix('172.18.0.0/16')] }) });
    expect(texts.filter((text) => text.includes('saddr'))).toEqual([]);
  });

  it('let an interface in from all LANs that it leads to, also together with other interfaces', () => {
    const connected = [...covering.connected, { prefix: annex, link: 'eth1' }, { prefix: annex, link: 'eth2' }];
    const self = { ...connector, routes: null };
    const texts = textsOf({ self, underlay: { ...covering, connected } });
    expect(texts.filter((text) => text.includes('saddr'))).toEqual([
      'iifname "eth1" ip daddr 10.77.0.1 ip saddr != { 192.168.50.0/24, 192.168.60.0/24 } drop',
      'iifname "eth2" ip daddr 10.77.0.1 ip saddr != 192.168.60.0/24 drop',
    ]);
  });

  it.each([
    ['10.77.0.0/24', '10.77.0.255/32'],
    ['10.77.0.2/30', '10.77.0.3/32'],
    ['10.77.0.2/31', null],
    ['10.77.0.3/32', null],
  ])('let in broadcasts of the range where it has a broadcast address: %s', (text, broadcast) => {
    const cidr = maskPrefix(text);
    const own = { ...server, address: address('10.77.0.2') };
    const [, others] = textsOf({ self: own, map: network([own], { cidr }) });
    const named = ['10.77.0.2/32', '224.0.0.0/4', '255.255.255.255/32', ...(broadcast === null ? [] : [broadcast])];
    expect(others).toBe(`iifname "cpn0" ip daddr != { ${named.join(', ')} } drop`);
  });

  it('take the VRF of the tunnel for the tunnel, and name the addresses of the host there', () => {
    expect(textsOf({ vrf: 'blue' })[0]).toBe('ip daddr 10.77.0.3 iifname != { "cpn0", "lo", "blue", "docker0" } drop');
    expect(textsOf({ self: connector, vrf: 'blue' })[2]).toBe(
      'iifname "cpn0" ct direction original ip daddr != { 10.77.0.1/32, 192.168.50.0/24 } ip daddr 203.0.113.22/32 drop',
    );
  });

  it('let in what another network brings that gave this host the same address', () => {
    const others = [
      { link: 'cpn1', isConnector: false, address: server.address },
      { link: 'cpn2', isConnector: false, address: address('10.88.0.3') },
    ];
    expect(textsOf({ others })[0]).toBe('ip daddr 10.77.0.3 iifname != { "cpn0", "lo", "cpn1", "docker0" } drop');
  });

  it('are for either family', () => {
    const six = peer(3, { address: address('fd00::3') });
    const texts = textsOf({
      self: six,
      map: network([six], { cidr: prefix('fd00::/64') }),
      routes: [prefix('10.0.0.0/8')],
    });
    expect(texts).toEqual([
      'ip6 daddr fd00::3 iifname != { "cpn0", "lo", "docker0" } drop',
      'iifname "cpn0" ip6 daddr != { fd00::3/128, ff00::/8 } drop',
      // Routes of the other family lead into the tunnel: answers come back.
      'iifname "cpn0" ct direction original ip daddr != 224.0.0.0/4 drop',
      'iifname "cpn0" ct state { invalid, untracked } ip daddr != 224.0.0.0/4 drop',
    ]);
  });

  it('name no interface that nft could not take', () => {
    const links = [...covering.links, { name: 'odd"name', kind: 'bridge', isInternal: true } as const];
    expect(textsOf({ underlay: { ...covering, links } })).toEqual(textsOf());
  });
});

describe('an SSH session', () => {
  const session = (from: string, local: string | null): SshClient => ({
    address: address(from),
    local: local === null ? null : address(local),
  });
  const kept = (self: typeof server, ...sessions: SshClient[]) =>
    textsOf({ self, sessions }).filter((text) => text.endsWith(' accept'));
  const exception = (from: string, to: string) =>
    `ip saddr ${from}/32 ip daddr ${to}/32 tcp flags & (fin|syn|rst|ack) != syn accept`;

  it('goes on that came to the tunnel address by another network', () => {
    expect(kept(server, session('203.0.113.66', '10.77.0.3'))).toEqual([exception('203.0.113.66', '10.77.0.3')]);
    expect(kept(server, session('198.51.100.7', '10.77.0.3'))).toEqual([exception('198.51.100.7', '10.77.0.3')]);
    expect(textsOf({ sessions: [session('203.0.113.66', '10.77.0.3')] })[0]).toBe(
      exception('203.0.113.66', '10.77.0.3'),
    );
  });

  it('goes on that came through the tunnel to another address of the host', () => {
    expect(kept(server, session('10.77.0.1', '203.0.113.22'))).toEqual([exception('10.77.0.1', '203.0.113.22')]);
  });

  it('ends with the expiry of its peer, by a rule before its own', () => {
    const deadlines = expiryRules('cpn0', network([peer(1, { expiresAt: 5_000 }), server]), server, []);
    const texts = textsOf({ deadlines, sessions: [session('10.77.0.1', '203.0.113.22')] });
    expect(texts.slice(0, 2)).toEqual([
      'iifname "cpn0" ip saddr @expiring ip saddr != @unexpired drop',
      exception('10.77.0.1', '203.0.113.22'),
    ]);
  });

  it('from an address that several interfaces lead to goes on unless all of them let new ones in', () => {
    const from = session('192.168.50.9', '10.77.0.1');
    const keptBy = (...links: string[]) => {
      const connected = links.map((link) => ({ prefix: lan, link }));
      const rules = textsOf({
        self: { ...connector, routes: [] },
        underlay: { ...covering, connected },
        sessions: [from],
      });
      return rules.filter((text) => text.endsWith(' accept')).length;
    };
    expect([keptBy('docker0'), keptBy('docker0', 'eth1'), keptBy('eth1')]).toEqual([0, 1, 1]);
  });

  it('from an address that no interface leads to goes on', () => {
    const nowhere = { ...covering, connected: [], routed: [], uplinks: [] };
    const rules = textsOf({ underlay: nowhere, sessions: [session('198.51.100.7', '10.77.0.3')] });
    expect(rules).toContain(exception('198.51.100.7', '10.77.0.3'));
  });

  it('of this host with itself needs no exception, whichever address it has', () => {
    const own = { ...covering, addresses: [...covering.addresses, address('198.51.100.9')] };
    for (const from of ['10.77.0.3', '203.0.113.22', '198.51.100.9']) {
      const rules = textsOf({ underlay: own, sessions: [session(from, '10.77.0.3')] });
      expect([from, rules.filter((text) => text.endsWith(' accept'))]).toEqual([from, []]);
    }
  });

  it('between two families, as by a proxy, is none that a rule could name', () => {
    expect(kept(server, session('fd00::9', '10.77.0.3'), session('198.51.100.7', 'fd00::3'))).toEqual([]);
  });

  it('needs no exception where new ones get through too', () => {
    expect(kept(server, session('10.77.0.1', '10.77.0.3'), session('203.0.113.66', '203.0.113.22'))).toEqual([]);
    expect(kept(server, session('172.18.0.2', '10.77.0.3'), session('10.77.0.3', '10.77.0.3'))).toEqual([]);
    expect(kept(server, session('203.0.113.22', '10.77.0.3'), session('10.77.0.1', null))).toEqual([]);
    expect(kept(connector, session('192.168.50.9', '10.77.0.1'), session('10.77.0.3', '192.168.50.1'))).toEqual([]);
  });
});

describe('the rules of a host in one network', () => {
  const rulesOf = (changes: Partial<HostRulesInputs>) => {
    const given = { link: 'cpn0', map, self: server, underlay: covering, relayedPeers: [], ingress: [], routes: [] };
    const none = { vrf: undefined, others: [], ipv6: null, sessions: [], deadlines: [], takesSourceRoutes: false };
    const options = { masquerade: true, acceptRoutes: true, maps: [] };
    return hostRules({ ...given, ...none, options, forwards: false, ...changes }).rules;
  };

  it('mark connections from outside if any of its routes is a default route', () => {
    const marks = (routes: (typeof lan)[]) => rulesOf({ routes }).some(isReturnPathRule);
    expect([marks([lan, everything]), marks([everything]), marks([lan]), marks([])]).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it('let in what a connector serves, also while it is out of service: others may not have received that yet', () => {
    const drained = { ...connector, withdrawn: [lan] };
    const inService = { ...map, peers: [connector, server] };
    expect(textsOf({ self: drained, map: { ...map, peers: [drained, server] } })).toEqual(
      textsOf({ self: connector, map: inService }),
    );
  });
});
