import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { refuseExpired } from '../../../src/core/forward/deadline-rules.ts';
import { type Forwarding, forwardingRules, localRules } from '../../../src/core/forward/forwarding-rules.ts';
import type { Underlay } from '../../../src/core/host-state/actual.ts';
import type { Peer, PeerFailure } from '../../../src/core/map/model.ts';
import { overlaps, type Prefix } from '../../../src/core/net/cidr.ts';
import { address, desireFor, dialled, network, networksWithExit, peer, prefix, underlay } from '../samples.ts';

const [lan, annex] = [prefix('192.168.50.0/24'), prefix('192.168.60.0/24')];
const self = peer(1, { type: 'connector', endpoint: dialled(1), routes: [lan] });
const other = peer(2, { type: 'connector', endpoint: dialled(2), routes: [annex] });
const laptop = peer(3);
const map = network([self, other, laptop], { routes: [lan, annex] });

/** A host in the LAN, with the way to the internet on another interface. */
const covering: Underlay = {
  ...underlay,
  connected: [...underlay.connected, { prefix: lan, link: 'eth1' }],
  routed: [],
};
const masquerading = { masquerade: true, acceptRoutes: true, maps: [] };
const plain = { ...masquerading, masquerade: false };

/** The rules as nft gets them, without their comments. */
function textsOf(changes: Partial<Forwarding> = {}): string[] {
  const given = { link: 'cpn0', map, self, options: masquerading, relayedPeers: [], underlay: covering, ingress: [] };
  return forwardingRules({ ...given, ...changes }).map(({ chain, text }) => `${chain}: ${text}`);
}

/** The rules that end TCP connections with a reset, and answer other packets. */
const resets = (match: string) => [
  `${match} meta l4proto tcp reject with tcp reset`,
  `${match} reject with icmpx admin-prohibited`,
];
const [known, ours] = ['ct status & (confirmed|snat)', 'ct mark & 0x20000000'];

describe('the packet rules of a connector', () => {
  it('let through what is advertised, in this order', () => {
    const network = '10.77.0.0/24, 192.168.60.0/24';
    const inward = `ct original ip saddr { ${network} } ct original ip daddr 192.168.50.0/24`;
    const outward = `ct original ip saddr 192.168.50.0/24 ct original ip daddr { ${network} }`;
    expect(textsOf()).toEqual([
      'forward: oifname "cpn0" tcp flags & (syn|rst) == syn tcp option maxseg size set rt mtu',
      'forward: iifname "cpn0" tcp flags & (syn|rst) == syn tcp option maxseg size set rt mtu',
      ...resets(
        `forward: ct original ip saddr 10.77.0.0/24 ct original ip daddr 192.168.50.0/24 ${known} == confirmed`,
      ),
      ...resets(`forward: ${outward} ${known} == confirmed`),
      ...resets(`forward: ct mark & 0x40000000 == 0x40000000 ${inward}`),
      'forward: iifname "cpn0" ct status dnat ct original ip daddr 10.77.0.1 accept',
      `forward: iifname "cpn0" oifname "cpn0" ct direction reply ct original ip saddr { ${network} } ct original ip daddr { ${network} } accept`,
      `forward: iifname "cpn0" ct direction reply ${outward} accept`,
      `forward: iifname "cpn0" oifname != { "eth0", "eth1" } ct direction reply ${known} == (confirmed|snat) ${ours} != 0x20000000 accept`,
      'forward: iifname "cpn0" ct direction reply drop',
      `forward: iifname "cpn0" oifname "cpn0" ip saddr { ${network} } ip daddr { ${network} } accept`,
      `forward: iifname "cpn0" ip saddr { ${network} } ip daddr 192.168.50.0/24 accept`,
      'forward: iifname "cpn0" reject with icmpx admin-prohibited',
      `forward: oifname "cpn0" ct direction reply ${inward} accept`,
      'forward: oifname "cpn0" ct direction reply ct status dnat ct original ip daddr 10.77.0.1 accept',
      'forward: oifname "cpn0" ct direction reply drop',
      `forward: iifname "eth1" oifname "cpn0" ip saddr 192.168.50.0/24 ip daddr { ${network} } accept`,
      'forward: oifname "cpn0" ip saddr { 10.77.0.0/24, 192.168.60.0/24, 192.168.50.0/24 } drop',
      'forward: iifname { "eth0", "eth1" } oifname "cpn0" drop',
      `forward: oifname "cpn0" ${known} == (confirmed|snat) ${ours} == 0x20000000 drop`,
      `postrouting: oifname "cpn0" ip saddr { ${network} } ip saddr != 10.77.0.1 masquerade`,
      'postrouting: ip saddr 10.77.0.0/24 ip daddr 192.168.50.0/24 oifname != "cpn0" ct mark set ct mark | 0x20000000 masquerade',
      `postrouting: oifname "cpn0" ip saddr 192.168.50.0/24 ip daddr { ${network} } ct mark set ct mark | 0x20000000 masquerade`,
      'leaving: oifname "cpn0" icmp type redirect drop',
      'leaving: oifname "cpn0" ct direction reply accept',
      'leaving: oifname "cpn0" ip saddr != { 10.77.0.0/24, 192.168.60.0/24, 192.168.50.0/24 } fib saddr type != local drop',
    ]);
  });

  describe('for relayed packets', () => {
    const follows = { followsRelay: true } as const;
    const tablet = peer(4, follows);
    const desktop = peer(5, follows);
    const peers = [self, other, laptop, tablet, desktop];
    const kept = (changes: Partial<Forwarding> = {}, relay: number | undefined = 1) =>
      textsOf({ map: network(peers, { routes: [lan, annex], ...(relay && { relay }) }), ...changes }).flatMap((text) =>
        text.startsWith('postrouting: ') && / (?:accept|10\.77\.0\.1 masquerade)$/.test(text) ? text.slice(13) : [],
      );
    const hidden = 'ip saddr { 10.77.0.3/32, 10.77.0.4/32, 10.77.0.5/32 }';
    const masquerade = 'oifname "cpn0" ip saddr { 10.77.0.0/24, 192.168.60.0/24 } ip saddr != 10.77.0.1 masquerade';

    it('keep the sender’s address toward hosts that follow the named relay, if it is this one', () => {
      const keep = `oifname "cpn0" ${hidden} ip daddr { 10.77.0.4/32, 10.77.0.5/32 } accept`;
      expect(kept()).toEqual([keep, masquerade]);
    });

    it('masquerade only new connections, if it is another one', () => {
      const begun = 'tcp flags & (fin|syn|rst|ack) != syn';
      const keep = `oifname "cpn0" ${hidden} ip daddr { 10.77.0.4/32, 10.77.0.5/32 } ${begun} accept`;
      expect(kept({}, 2)).toEqual([keep, masquerade]);
    });

    it('masquerade all of them, if the service names none', () => {
      expect(kept({}, 0)).toEqual([masquerade]);
    });

    it('masquerade what another connector delivers', () => {
      const keep = `oifname "cpn0" ${hidden} ip daddr 10.77.0.5/32 accept`;
      expect(kept({ relayedPeers: [tablet] })).toEqual([keep, masquerade]);
      expect(kept({ relayedPeers: [tablet, desktop] })).toEqual([masquerade]);
    });
  });

  it('end the connections of the other mode: with masquerading those that are not, without it those that we masqueraded', () => {
    const stale = (options: Forwarding['options']) =>
      textsOf({ options }).filter((text) => text.startsWith('forward: ct original'));
    for (const text of stale(masquerading)) expect(text).toContain(`${known} == confirmed `);
    for (const text of stale(plain)) {
      expect(text).toContain(`${known} == (confirmed|snat) ${ours} == 0x20000000 `);
    }
    expect(stale(plain)).toHaveLength(4);
  });

  describe('of a closed network', () => {
    const closed = { ...map, rules: { rules: [], requiresEnforcement: false } };
    const standby = (changes: Partial<Forwarding>) =>
      textsOf({ map: closed, standby: [lan], ...changes }).filter((text) => text.includes('host-unreachable'));
    const ends = 'forward: oifname "cpn0" ip saddr 192.168.50.0/24 ip daddr { 10.77.0.0/24, 192.168.60.0/24 }';
    const begins = [
      'tcp flags & (fin|syn|rst|ack) == syn',
      'meta l4proto != tcp ct direction original ct state != related',
    ];

    it('answer what a LAN begins while another connector is in service for it', () => {
      const expected = begins.map((each) => `${ends} ${each} reject with icmpx host-unreachable`);
      expect(standby({})).toEqual(expected);
      expect(standby({ map })).toEqual([]);
      expect(standby({ standby: [] })).toEqual([]);
    });

    it('leave to it the devices that dial it, and the part of a LAN for which it is in service', () => {
      const phone = peer(9, { via: { connector: 1 } });
      const part = prefix('192.168.50.128/25');
      const both = peer(1, { ...self, routes: [lan, part] });
      const given = { ...closed, peers: [both, other, laptop, phone], routes: [lan, part, annex] };
      for (const text of standby({ map: given, self: both })) {
        expect(text).toContain(`${ends} ip saddr != 192.168.50.128/25 ip daddr != 10.77.0.9/32 `);
      }
    });

    it('follow from the connector that is in service', () => {
      const second = peer(4, { type: 'connector', endpoint: dialled(4), routes: [lan] });
      const given = { ...closed, peers: [...map.peers, second] };
      const refuses = (at: Peer, failed: readonly PeerFailure[] = []) =>
        desireFor(at, given, { failed }).firewall?.rules.some(({ name }) => name === 'refuse-standby');
      expect([refuses(self), refuses(second)]).toEqual([false, true]);
      expect(refuses(second, [{ peer: self.id, back: false }])).toBe(false);
    });
  });

  it('let nothing that an interface forwards for this connector alone go where it did not go before', () => {
    const opening = { link: 'eth1', all: '0', links: ['eth0', 'eth1'] };
    const ingress = [
      { link: 'eth1', closed: ['eth0', 'eth1'], opening },
      { link: 'eth2', closed: null, opening },
    ];
    const passing = textsOf({ ingress }).filter((text) => !textsOf().includes(text));
    expect(passing).toEqual([
      'forward: meta nfproto ipv4 iifname "eth1" oifname { "eth0", "eth1" } ct direction reply accept',
      'forward: meta nfproto ipv4 iifname "eth1" oifname { "eth0", "eth1" } drop',
    ]);
  });

  it('close nothing where an interface that forwards for this connector alone is the only one', () => {
    const opening = { link: 'eth1', all: '0', links: [] };
    expect(textsOf({ ingress: [{ link: 'eth1', closed: [], opening }] })).toEqual(textsOf());
  });

  it('name the routes of other connectors only where this one accepts them', () => {
    const own = textsOf({ options: { masquerade: true, acceptRoutes: false, maps: [] } });
    expect(own.filter((text) => text.includes('192.168.60.0/24'))).toEqual([]);
    expect(own).toHaveLength(textsOf().length);
  });

  it('let a LAN in by the interfaces that lead to it, and not where there are none', () => {
    const entrances = (changes: Partial<Underlay>) =>
      textsOf({ underlay: { ...covering, ...changes } })
        .filter((text) => /^forward: iifname (?!!).* oifname "cpn0" ip saddr .* accept$/.test(text))
        .filter((text) => !text.startsWith('forward: iifname "cpn0"'));
    expect(entrances({ connected: [] })).toEqual([
      expect.stringContaining('iifname "eth0" oifname "cpn0" ip saddr 192'),
    ]);
    expect(entrances({ connected: [], uplinks: [] })).toEqual([]);
  });

  it('masquerade relayed packets only if masquerading is off', () => {
    const texts = textsOf({ options: plain }).filter((text) => text.includes('masquerade'));
    expect(texts).toEqual([expect.stringContaining('ip saddr != 10.77.0.1 masquerade')]);
  });

  it('refuse, before anything is accepted, what other connectors hand on for peers that do not answer here either', () => {
    const relayed = textsOf({ relayedPeers: [laptop] }).filter((text) => !textsOf().includes(text));
    expect(relayed).toEqual([
      'forward: iifname "cpn0" oifname "cpn0" ip saddr 10.77.0.2/32 ip daddr 10.77.0.3/32 reject with icmpx host-unreachable',
    ]);
    const verdicts = textsOf({ relayedPeers: [laptop] }).map((text) => text.split(' ').at(-1));
    expect(verdicts.indexOf('host-unreachable')).toBeLessThan(verdicts.indexOf('accept'));
  });

  it('follow from what is seen to fail', () => {
    const failing = (back: boolean) =>
      desireFor(
        self,
        { ...map, peers: [self, other, peer(3, { endpoint: dialled(3) })] },
        {
          failed: [{ peer: 3, back }],
        },
      ).firewall?.rules.map(({ name }) => name);
    expect(failing(false)).toContain('refuse-detour');
    expect(failing(true)).not.toContain('refuse-detour');
  });

  it('keep forwarding to a route that this connector took out of service', () => {
    expect(textsOf({ self: { ...self, withdrawn: [lan, map.cidr] } })).toEqual(textsOf());
  });

  it('are none for a LAN where no route is served', () => {
    const texts = textsOf({ self: { ...self, routes: [] } });
    expect(texts.filter((text) => text.includes('ip daddr 192.168.50.0/24'))).toEqual([]);
    expect(texts.filter((text) => text.includes('ip saddr 192.168.50.0/24'))).toEqual([]);
    expect(texts.filter((text) => text.endsWith(' accept'))).toEqual([
      expect.stringContaining('ct status dnat'),
      expect.stringContaining('oifname "cpn0" ct direction reply'),
      expect.stringContaining('oifname != "eth0" ct direction reply'),
      expect.stringContaining('iifname "cpn0" oifname "cpn0" ip saddr'),
      expect.stringContaining('ct status dnat'),
      'leaving: oifname "cpn0" ct direction reply accept',
    ]);
  });

  it('use an advertised default route outbound only', () => {
    const all = prefix('0.0.0.0/0');
    const texts = textsOf({ map: { ...map, routes: [lan, all] }, self: { ...self, routes: [lan] } });
    expect(texts).toContain('forward: iifname "cpn0" oifname "cpn0" ip saddr 10.77.0.0/24 ip daddr 0.0.0.0/0 accept');
    const exit = textsOf({ map: { ...map, routes: [lan, all] }, self: { ...self, routes: null } });
    expect(exit).toContain('forward: iifname "cpn0" ip saddr 10.77.0.0/24 ip daddr 192.168.50.0/24 accept');
    expect(exit.filter((text) => /saddr (\{[^}]*)?0\.0\.0\.0\/0/.test(text))).toEqual([]);
    for (const half of ['0.0.0.0/1', '128.0.0.0/1'].map(prefix)) {
      const texts = textsOf({ map: { ...map, routes: [half] }, self: { ...self, routes: null } });
      expect(texts.filter((text) => text.includes(`saddr ${half}`))).toEqual([]);
    }
  });

  describe('of an advertised default route', () => {
    const all = prefix('0.0.0.0/0');
    const special = '{ 0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16, 224.0.0.0/4, 240.0.0.0/4 }';
    const [from, to] = ['ip saddr 10.77.0.0/24', 'ip daddr 0.0.0.0/0'];
    /** What names the route, of the rules that let through what comes out of the tunnel, and what goes into it. */
    const ways = (routes: readonly Prefix[], changes: Partial<Underlay> = {}) =>
      textsOf({
        map: { ...map, routes },
        self: { ...self, routes: null },
        underlay: { ...covering, ...changes },
      }).filter(
        (text) =>
          / daddr (\{ )?(0\.0\.0\.0|128\.0\.0\.0)\/[01].* accept$/.test(text) &&
          !text.includes('"cpn0" oifname "cpn0"'),
      );

    it('lead out by the default routes of the host alone, and to no special range', () => {
      const toward = (links: string) => [
        `forward: iifname "cpn0" oifname ${links} ${from} ${to} ip daddr != ${special} accept`,
        `forward: iifname ${links} oifname "cpn0" ct direction reply ct original ${from} ct original ${to} ct original ip daddr != ${special} accept`,
      ];
      expect(ways([lan, all])).toEqual(toward('"eth0"'));
      expect(ways([lan, all], { uplinks: ['eth2'] })).toEqual(toward('"eth2"'));
      expect(ways([all], { routed: [{ prefix: prefix('0.0.0.0/1'), link: 'tun0' }] })).toEqual(
        toward('{ "eth0", "tun0" }'),
      );
      expect(ways([lan, all], { uplinks: [] })).toEqual([]);
    });

    it('do so for its halves too', () => {
      const texts = ways(['0.0.0.0/1', '128.0.0.0/1'].map(prefix));
      expect(texts).toHaveLength(2);
      for (const text of texts) {
        expect(text).toContain('ifname "eth0"');
        expect(text).toContain(`ip daddr != ${special}`);
      }
    });

    it('are no bound of a prefix that is advertised by itself', () => {
      const link = prefix('169.254.0.0/16');
      const texts = textsOf({ map: { ...map, routes: [link, all] }, self: { ...self, routes: null } });
      const specific = texts.indexOf(`forward: iifname "cpn0" ${from} ip daddr ${link} accept`);
      expect(specific).toBeGreaterThan(0);
      expect(specific).toBeLessThan(
        texts.findIndex((text) => text.includes(' ip daddr !=') && !text.includes('ct original')),
      );
    });

    it('end no connection from peer to peer, which is never masqueraded here', () => {
      const stale = (routes: readonly Prefix[]) =>
        textsOf({ map: { ...map, routes }, self: { ...self, routes: null } }).filter((text) =>
          text.includes('confirmed|snat) == confirmed'),
        );
      const wide = prefix('10.0.0.0/8');
      const others = new RegExp(` ct original ip [sd]addr != ${map.cidr} `);
      for (const text of [...stale([all]), ...stale([wide])]) expect(text).toMatch(others);
      expect([stale([all]).length, stale([wide]).length, stale([wide, all]).length]).toEqual([2, 4, 6]);
    });
  });

  it('leave out a route of another family than the network', () => {
    expect(textsOf({ map: { ...map, routes: [lan, annex, prefix('fd00::/64')] } })).toEqual(textsOf());
  });

  it('never name ranges that overlap side by side, which no nft set takes', () => {
    const isDisjoint = (prefixes: readonly Prefix[]) =>
      prefixes.every((one, at) => prefixes.slice(at + 1).every((two) => !overlaps(one, two)));
    let counted = 0;
    fc.assert(
      fc.property(networksWithExit, fc.nat(), (any, at) => {
        const chosen = any.peers[at % any.peers.length] ?? self;
        const connector = { ...chosen, type: 'connector' as const };
        const given = { link: 'cpn0', options: masquerading, relayedPeers: any.peers, underlay: covering, ingress: [] };
        const rules = forwardingRules({ map: any, self: connector, ...given });
        const matches = rules.flatMap(({ text }) => [...text.matchAll(/ [sd]addr (?:!= )?\{ ([^}]+) \}/g)]);
        const sets = new Set(matches.map(([, ranges = '']) => ranges));
        for (const ranges of sets) expect(isDisjoint(ranges.split(', ').map(prefix))).toBe(true);
        counted += sets.size;
      }),
    );
    expect(counted).toBeGreaterThan(100);
  });
});

it('half routes of a VPN are no exit for a connector that serves none', () => {
  const halves = ['0.0.0.0/1', '128.0.0.0/1'].map((text) => ({ prefix: prefix(text), link: 'tun0' }));
  const exit = prefix('0.0.0.0/0');
  const serving = { ...self, routes: [exit] };
  const routed = { ...covering, routed: halves };
  expect(textsOf({ underlay: routed })).toEqual(textsOf());
  const texts = textsOf({
    underlay: routed,
    self: serving,
    map: { ...map, routes: [exit], peers: [serving, other, laptop] },
  });
  expect(texts.filter((text) => text.includes('oifname { "eth0", "tun0" }'))).toHaveLength(1);
});

it('a host that is no connector refuses expired peers before it accepts what is published', () => {
  const expired = refuseExpired('cpn0', [{ first: address('10.77.0.9'), last: address('10.77.0.9'), at: 1 }]);
  expect(localRules('cpn0', laptop, expired).map(({ name }) => name)).toEqual([
    'refuse-expired',
    'refuse-expired',
    'accept-published',
    'accept-local-answers',
    'refuse-rest',
  ]);
  expect(localRules('cpn0', laptop).map(({ name }) => name)).not.toContain('refuse-expired');
});
