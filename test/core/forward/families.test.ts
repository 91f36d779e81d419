import { expect, it } from 'vitest';
import { ageRules, expiryRules, timeoutsOf, writeSets } from '../../../src/core/forward/deadline-rules.ts';
import { type HostRulesInputs, hostRules } from '../../../src/core/forward/host-rules.ts';
import type { Underlay } from '../../../src/core/host-state/actual.ts';
import { address, network, peer, prefix, underlay } from '../samples.ts';

type Names = Readonly<Record<'range' | 'at' | 'peer' | 'own' | 'lan' | 'all', string>>;

/** The same network in each family. */
const four: Names = {
  ...{ range: '10.77.0.0/24', at: '10.77.0.1', peer: '10.77.0.2', own: '203.0.113.22' },
  ...{ lan: '192.168.50.0/24', all: '0.0.0.0/0' },
};
const six: Names = {
  ...{ range: 'fd77::/64', at: 'fd77::1', peer: 'fd77::2', own: '2001:db8::22' },
  ...{ lan: 'fd50::/64', all: '::/0' },
};

/** What the rules of an IPv4 network have, and those of an IPv6 network in its place. */
const words: readonly (readonly [string, string])[] = [
  ['ip6 daddr != ff00::/8', 'ip daddr != 224.0.0.0/4'],
  ['ip saddr', 'ip6 saddr'],
  ['ip daddr', 'ip6 daddr'],
  ['icmp type prot-unreachable', 'icmpv6 type addr-unreachable'],
  ['icmp type redirect', 'icmpv6 type nd-redirect'],
  ['ipv4_addr', 'ipv6_addr'],
  ['unexpired', 'unexpired6'],
  ['expiring', 'expiring6'],
  [
    '{ 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16 }',
    '{ fc00::/7, fe80::/10 }',
  ],
  [
    '{ 0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16, 224.0.0.0/4, 240.0.0.0/4 }',
    '{ ::/127, fe80::/10, ff00::/8, 64:ff9b::/96 }',
  ],
  [', 224.0.0.0/4, 255.255.255.255/32, 10.77.0.255/32 }', ', ff00::/8 }'],
  ...(['range', 'lan', 'all'] as const).map((name) => [four[name], six[name]] as const),
  ...(['at', 'peer', 'own'] as const).flatMap((name) => [
    [`${four[name]}/32`, `${six[name]}/128`] as const,
    [four[name], six[name]] as const,
  ]),
];
const escaped = words.map(([word]) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
const anyWord = new RegExp(escaped.join('|'), 'g');
const toSix = (text: string) => text.replace(anyWord, (word) => new Map(words).get(word) ?? word);

/** The routes of both families: those of the other one are no business of a network. */
const routes = [four.lan, four.all, six.lan, six.all].map((each) => prefix(each));
const covering: Underlay = {
  ...underlay,
  connected: [four.lan, six.lan].map((each) => ({ prefix: prefix(each), link: 'eth1' })),
  routed: [],
  addresses: [four.own, six.own].map((each) => address(each)),
};

/** All that a host of the network gives to nft. */
function textsOf(names: Names, type: 'connector' | 'origin', changes: Partial<HostRulesInputs>): string[] {
  const self = peer(1, { type, address: address(names.at), ...(type === 'connector' && { routes }) });
  const map = network([self, peer(2, { address: address(names.peer), expiresAt: 5_000 })], {
    ...{ cidr: prefix(names.range), routes },
  });
  const forwards = type === 'connector';
  const deadlines = [...expiryRules('cpn0', map, self, []), ...ageRules('cpn0', forwards ? 7_000 : null, self.address)];
  const { rules } = hostRules({
    ...{
      link: 'cpn0',
      map,
      self,
      options: { masquerade: true, acceptRoutes: true, maps: [] },
      relayedPeers: [],
      ingress: [],
    },
    ...{ underlay: covering, routes: [], forwards, vrf: undefined, others: [], ipv6: null, sessions: [] },
    ...{ deadlines, takesSourceRoutes: false, ...changes },
  });
  return [
    ...rules.map(({ chain, text }) => `${chain}: ${text}`),
    ...writeSets('cpn0', deadlines, 0),
    ...[...timeoutsOf('cpn0', deadlines, 0)].map((timeout) => timeout.join(' ')),
  ];
}

it.each([
  ['a host', 'origin', {}],
  ['a connector of a LAN and of a default route', 'connector', {}],
  ['a connector in a VRF', 'connector', { vrf: 'blue' }],
  [
    'a connector that does not masquerade',
    'connector',
    { options: { masquerade: false, acceptRoutes: true, maps: [] } },
  ],
  [
    'a connector without the routes of others',
    'connector',
    { options: { masquerade: true, acceptRoutes: false, maps: [] } },
  ],
] as const)('the packet rules of %s are the same in an IPv6 network, in its own family', (_, type, changes) => {
  const texts = textsOf(four, type, changes);
  expect(texts.length).toBeGreaterThan(6);
  expect(textsOf(six, type, changes)).toEqual(texts.map(toSix));
});
