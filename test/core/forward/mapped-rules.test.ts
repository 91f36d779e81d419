import { describe, expect, it } from 'vitest';
import { type Forwarding, forwardingRules } from '../../../src/core/forward/forwarding-rules.ts';
import { findIngresses, noForwarding } from '../../../src/core/forward/ingress.ts';
import { boundsForwarding } from '../../../src/core/forward/own-table.ts';
import { commentOf } from '../../../src/core/forward/packet-rule.ts';
import type { Underlay } from '../../../src/core/host-state/actual.ts';
import { behindRoutes, localsOf } from '../../../src/core/map/prefix-maps.ts';
import { address, desireFor, dialled, network, options, peer, prefix, underlay, usualConstraints } from '../samples.ts';

const [site, local, plain, everything] = ['10.201.1.0/24', '192.168.1.0/24', '192.168.50.0/24', '0.0.0.0/0'].map(
  prefix,
);
const maps = [{ route: site as never, local: local as never }];
const self = peer(1, { type: 'connector', endpoint: dialled(1) });
const map = network([self, peer(3)], { routes: [site] as never });

/** A host in the LAN, with the way to the internet on another interface. */
const covering = {
  ...underlay,
  connected: [...underlay.connected, { prefix: local, link: 'eth1' }],
  routed: [],
} as Underlay;

function textsOf(changes: Partial<Forwarding> = {}): string[] {
  const given = { link: 'cpn0', map, self, relayedPeers: [], underlay: covering, ingress: [] };
  const rules = forwardingRules({ ...given, options: { masquerade: true, acceptRoutes: true, maps }, ...changes });
  return rules.map(({ chain, text }) => `${chain}: ${text}`);
}

/** The rules that end TCP connections with a reset, and answer other packets. */
const resets = (match: string) => [
  `${match} meta l4proto tcp reject with tcp reset`,
  `${match} reject with icmpx admin-prohibited`,
];
const bare = { masquerade: false, acceptRoutes: true, maps };
const known = 'ct status & confirmed == confirmed';
const invalid = 'meta l4proto tcp ct state invalid';

describe('the packet rules of a connector with a mapped LAN', () => {
  it('map both directions, and judge each packet by the addresses that it has there', () => {
    expect(textsOf({ options: bare })).toEqual([
      'mapping: iifname "cpn0" ip daddr 10.201.1.0/24 ct mark set ct mark | 0x40000000 dnat ip prefix to ip daddr map { 10.201.1.0/24 : 192.168.1.0/24 }',
      expect.stringContaining('oifname "cpn0" tcp flags'),
      expect.stringContaining('iifname "cpn0" tcp flags'),
      expect.stringContaining('ct original ip saddr 10.77.0.0/24 ct original ip daddr 10.201.1.0/24 ct status'),
      expect.stringContaining('ct original ip saddr 10.77.0.0/24 ct original ip daddr 10.201.1.0/24 ct status'),
      ...resets(
        'forward: ct original ip saddr 10.77.0.0/24 ct original ip daddr 10.201.1.0/24 ct reply ip saddr != 192.168.1.0/24',
      ),
      ...resets(
        `forward: ct original ip saddr 192.168.1.0/24 ct original ip daddr 10.77.0.0/24 ${known} ct reply ip daddr != 10.201.1.0/24`,
      ),
      expect.stringContaining('ct status dnat ct original ip daddr 10.77.0.1 accept'),
      expect.stringContaining('iifname "cpn0" oifname "cpn0" ct direction reply'),
      'forward: iifname "cpn0" ct direction reply ct original ip saddr 192.168.1.0/24 ct original ip daddr 10.77.0.0/24 accept',
      expect.stringContaining('oifname != { "eth0", "eth1" }'),
      'forward: iifname "cpn0" ct direction reply drop',
      'forward: iifname "cpn0" oifname "cpn0" ip saddr 10.77.0.0/24 ip daddr 10.77.0.0/24 accept',
      'forward: iifname "cpn0" ip saddr 10.77.0.0/24 ip daddr 192.168.1.0/24 ct original ip daddr 10.201.1.0/24 accept',
      `redirected: iifname "cpn0" ${invalid} ip daddr 192.168.1.0/24 drop`,
      `redirected: iifname "cpn0" ${invalid} ip daddr 10.201.1.0/24 ip daddr set ip daddr & 0.0.0.255 | 192.168.1.0`,
      `forward: iifname "cpn0" ${invalid} ip saddr 10.77.0.0/24 ip daddr 192.168.1.0/24 accept`,
      `leaving: oifname "cpn0" ${invalid} ip saddr 192.168.1.0/24 ip daddr 10.77.0.0/24 ip saddr set ip saddr & 0.0.0.255 | 10.201.1.0`,
      'forward: iifname "cpn0" reject with icmpx admin-prohibited',
      'forward: oifname "cpn0" ct direction reply ct original ip saddr 10.77.0.0/24 ct original ip daddr 10.201.1.0/24 accept',
      expect.stringContaining('ct status dnat ct original ip daddr 10.77.0.1 accept'),
      'forward: oifname "cpn0" ct direction reply drop',
      'forward: iifname "eth1" oifname "cpn0" ip saddr 192.168.1.0/24 ip daddr 10.77.0.0/24 accept',
      'forward: oifname "cpn0" ip saddr { 10.77.0.0/24, 10.201.1.0/24, 192.168.1.0/24 } drop',
      'forward: iifname { "eth0", "eth1" } oifname "cpn0" drop',
      expect.stringContaining('ct mark & 0x20000000 == 0x20000000 drop'),
      'sourcing: oifname "cpn0" ip saddr 192.168.1.0/24 ip daddr 10.77.0.0/24 ct mark set ct mark | 0x20000000 snat ip prefix to ip saddr map { 192.168.1.0/24 : 10.201.1.0/24 }',
      expect.stringContaining('postrouting: oifname "cpn0" ip saddr 10.77.0.0/24'),
      'leaving: oifname "cpn0" icmp type redirect drop',
      'leaving: oifname "cpn0" ct direction reply accept',
      'leaving: oifname "cpn0" ip saddr != { 10.77.0.0/24, 10.201.1.0/24 } fib saddr type != local drop',
    ]);
  });

  it('masquerade both directions, unless that is off, and end what has another source', () => {
    const texts = textsOf().filter((text) => !textsOf({ options: bare }).includes(text));
    expect(texts).toEqual([
      ...resets(
        'forward: ct original ip saddr 10.77.0.0/24 ct original ip daddr 10.201.1.0/24 ct status & (confirmed|snat) == confirmed',
      ),
      ...resets(
        `forward: ct original ip saddr 192.168.1.0/24 ct original ip daddr 10.77.0.0/24 ${known} ct reply ip daddr != 10.77.0.1/32`,
      ),
      'postrouting: ip saddr 10.77.0.0/24 ct original ip daddr 10.201.1.0/24 oifname != "cpn0" ct mark set ct mark | 0x20000000 masquerade',
      'postrouting: oifname "cpn0" ip saddr 192.168.1.0/24 ip daddr 10.77.0.0/24 ct mark set ct mark | 0x20000000 masquerade',
    ]);
  });

  it('leave other routes as they are, and end what was mapped to them', () => {
    const both = { ...map, routes: [site, plain] as never };
    const texts = textsOf({ map: both, options: bare });
    expect(texts).toContain('forward: iifname "cpn0" ip saddr 10.77.0.0/24 ip daddr 192.168.50.0/24 accept');
    expect(texts).toEqual(
      expect.arrayContaining(
        resets(
          'forward: ct mark & 0x40000000 == 0x40000000 ct original ip saddr 10.77.0.0/24 ct original ip daddr 192.168.50.0/24 ct original ip daddr != 10.201.1.0/24',
        ),
      ),
    );
    expect(textsOf({ map: both })).toContain(
      'postrouting: ip saddr 10.77.0.0/24 ip daddr 192.168.50.0/24 oifname != "cpn0" ct mark set ct mark | 0x20000000 masquerade',
    );
  });

  it('map a route inside that of a map to the same part of the LAN, and end no mapped connection for a wider one', () => {
    const half = prefix('10.201.1.128/25');
    expect(behindRoutes([site, half, plain] as never, maps)).toEqual([
      ...maps,
      { route: half, local: '192.168.1.128/25' },
      { route: plain, local: plain },
    ]);
    const both = textsOf({ map: { ...map, routes: [site, half] as never }, options: bare });
    expect(both).toEqual(textsOf({ options: bare }));
    const alone = textsOf({ map: { ...map, routes: [half] as never }, options: bare });
    expect(alone[0]).toContain('map { 10.201.1.128/25 : 192.168.1.128/25 }');
    expect(alone).toContainEqual(expect.stringContaining('ip daddr set ip daddr & 0.0.0.127 | 192.168.1.128'));
    const wide = prefix('10.201.0.0/16');
    const ends = 'ct original ip saddr 10.77.0.0/24 ct original ip daddr 10.201.0.0/16';
    expect(textsOf({ map: { ...map, routes: [site, wide] as never }, options: bare })).toEqual(
      expect.arrayContaining(
        resets(`forward: ct mark & 0x40000000 == 0x40000000 ${ends} ct original ip daddr != 10.201.1.0/24`),
      ),
    );
  });

  it('do not let a served default route lead to the LAN', () => {
    const exit = textsOf({ map: { ...map, routes: [site, everything] as never } });
    const accepts = exit.filter((text) => text.includes('oifname "eth0"') || text.includes('iifname "eth0" oifname'));
    expect(accepts.filter((text) => text.includes('192.168.1.0/24 }'))).toHaveLength(2);
  });

  it('are those of no map where its prefix is no route that this connector serves', () => {
    const other = { ...map, routes: [plain] as never };
    expect(textsOf({ map: other })).toEqual(textsOf({ map: other, options: { ...bare, masquerade: true, maps: [] } }));
  });

  it('of which only the map is left bound nothing', () => {
    const [first] = forwardingRules({
      ...{ link: 'cpn0', map, self, relayedPeers: [], underlay: covering, ingress: [], options: bare },
    });
    if (first === undefined) throw new Error('there are rules');
    expect(first.chain).toBe('mapping');
    expect(boundsForwarding({ firewall: [`mapping ${commentOf(first)}`] })).toBe(false);
  });
});

describe('a connector with a mapped LAN', () => {
  it('forwards by the interface of the LAN, and lets only that reach its address', () => {
    expect(findIngresses(localsOf(map.routes, maps), covering, noForwarding).ingress).toMatchObject([{ link: 'eth1' }]);
    const { firewall, ingress } = desireFor(
      self,
      map,
      { options: { ...options, maps } },
      { ...usualConstraints, underlay: covering },
    );
    expect(ingress.map(({ link }) => link)).toEqual(['eth1']);
    const arriving = firewall?.rules.filter(({ chain }) => chain === 'arriving').map(({ text }) => text) ?? [];
    expect(arriving).toContain('iifname "eth1" ip daddr 10.77.0.1 ip saddr != 192.168.1.0/24 drop');
    // On the wire, a packet has the address of the network.
    const taken = arriving.filter((text) => text.includes('fib daddr type local'));
    expect(taken).toHaveLength(2);
    for (const text of taken) expect(text).toContain('ip daddr != { 10.77.0.1/32, 10.201.1.0/24 }');
  });

  it('reports both prefixes, and refuses the routes that a map rules out', () => {
    const report = (routes: readonly unknown[]) =>
      desireFor(self, { ...map, routes: routes as never }, { options: { ...options, maps } }).report;
    expect(report([site])).toEqual([{ prefix: site, via: null, state: 'served', reason: null, local }]);
    expect(report([site, local])).toEqual([
      { prefix: local, via: null, state: 'refused', reason: `overlaps ${local}, which this host serves as ${site}` },
      { prefix: site, via: null, state: 'served', reason: null, local },
    ]);
    const inRange = [{ route: site as never, local: prefix('10.77.0.0/24') }];
    const within = desireFor(self, map, { options: { ...options, maps: inRange } });
    expect(within.report).toEqual([
      {
        prefix: site,
        via: null,
        state: 'refused',
        reason: 'is mapped to 10.77.0.0/24, which overlaps the network 10.77.0.0/24',
      },
    ]);
    expect(within.firewall?.rules.some(({ chain }) => chain === 'mapping')).toBe(false);
  });

  it('keeps an SSH session to an address of the LAN, which may have come by it, and reports none', () => {
    const sessions = [{ address: address('10.77.0.3'), local: address('192.168.1.1') }];
    const on = { ...usualConstraints, underlay: covering };
    const { keptSessions, firewall } = desireFor(self, map, { options: { ...options, maps }, sessions }, on);
    expect(keptSessions).toEqual([]);
    expect(firewall?.rules.filter(({ name }) => name === 'accept-session').map(({ text }) => text)).toEqual([
      'ip saddr 10.77.0.3/32 ip daddr 192.168.1.1/32 tcp flags & (fin|syn|rst|ack) != syn accept',
    ]);
  });
});
