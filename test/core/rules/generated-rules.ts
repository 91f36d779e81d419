/**
 * Generated networks with rules, and generated flows, for properties of the rules.
 *
 * @module
 */
import fc from 'fast-check';
import type { AccessRules, Flow, PortRange, Rule, Selector } from '../../../src/core/map/access-rules.ts';
import type { NetworkMap, Peer } from '../../../src/core/map/model.ts';
import { type Address, addressIn, type Family, familyOf, type Prefix, rangeOf } from '../../../src/core/net/cidr.ts';
import { address, dialled, network, peer, prefix } from '../samples.ts';

/** Prefixes and addresses of one family, in which routes overlap, nest and touch. */
export interface AddressPlan {
  readonly range: Prefix;
  readonly peerAt: (number: number) => Address;
  /** Routes; the last is the default route. */
  readonly routes: readonly Prefix[];
  /** More prefixes that selectors name: parts of routes, prefixes around them, peers, the other family. */
  readonly named: readonly Prefix[];
}

export const plans: Readonly<Record<Family, AddressPlan>> = {
  4: {
    range: prefix('10.77.0.0/24'),
    peerAt: (number) => address(`10.77.0.${number}`),
    routes: ['192.168.50.0/24', '192.168.50.64/26', '172.20.0.0/14', '192.168.60.0/24', '0.0.0.0/0'].map(prefix),
    named: [
      ...['192.168.50.7/32', '192.168.50.64/27', '192.168.50.0/25', '192.168.48.0/20', '172.20.0.0/16', '10.0.0.0/8'],
      ...[
        '10.77.0.2/32',
        '10.77.0.0/24',
        '10.77.0.0/25',
        '0.0.0.0/1',
        '128.0.0.0/1',
        '255.255.255.255/32',
        'fd50::/64',
      ],
    ].map(prefix),
  },
  6: {
    range: prefix('fd77::/64'),
    peerAt: (number) => address(`fd77::${number.toString(16)}`),
    routes: ['fd50::/64', 'fd50::40/122', 'fd20::/28', 'fd60::/64', '::/0'].map(prefix),
    named: [
      ...['fd50::7/128', 'fd50::40/123', 'fd50::/120', 'fd50::/16', 'fd20::/32', 'fd00::/8'],
      ...['fd77::2/128', 'fd77::/64', 'fd77::/65', '::/1', '8000::/1', '192.168.50.0/24'],
    ].map(prefix),
  },
};

const tags = ['ops', 'web', 'db'] as const;

/** Ports that rules name, with the ports on both sides of them. */
const portRanges: readonly PortRange[] = [
  { first: 22, last: 22 },
  { first: 80, last: 80 },
  { first: 81, last: 443 },
  { first: 9, last: 9 },
  { first: 8000, last: 8080 },
  { first: 1, last: 65_535 },
  { first: 65_535, last: 65_535 },
  { first: 1, last: 1 },
];
export const flowPorts = [1, 2, 8, 9, 10, 21, 22, 23, 79, 80, 81, 443, 444, 7999, 8000, 8080, 8081, 65_534, 65_535];

const selectorsOf = ({ routes, named }: AddressPlan): fc.Arbitrary<Selector> =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constant<Selector>({ kind: 'any' }) },
    { weight: 3, arbitrary: fc.integer({ min: 1, max: 9 }).map((id): Selector => ({ kind: 'peer', id })) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 9 }).map((id): Selector => ({ kind: 'peer', id: `${id}` })) },
    { weight: 3, arbitrary: fc.constantFrom(...tags, 'unused').map((tag): Selector => ({ kind: 'tag', tag })) },
    { weight: 3, arbitrary: fc.constantFrom(...routes).map((each): Selector => ({ kind: 'route', prefix: each })) },
    { weight: 3, arbitrary: fc.constantFrom(...named).map((each): Selector => ({ kind: 'cidr', prefix: each })) },
    { weight: 1, arbitrary: fc.constant<Selector>({ kind: 'gone', name: 'peer-2' }) },
  );

function rulesOf(plan: AddressPlan): fc.Arbitrary<Rule> {
  const selectors = fc.array(selectorsOf(plan), { minLength: 0, maxLength: 3 });
  return fc.record({
    name: fc.constantFrom('a', 'b', 'c'),
    from: selectors,
    to: selectors,
    protocol: fc.constantFrom('any' as const, 'tcp' as const, 'tcp' as const, 'udp' as const, 'icmp' as const),
    // A control plane may send ports with any protocol.
    ports: fc.array(fc.constantFrom(...portRanges), { maxLength: 3 }),
  });
}

/** The rules of a closed network. */
export function accessRules(plan: AddressPlan): fc.Arbitrary<AccessRules> {
  return fc.record({
    rules: fc.array(rulesOf(plan), { maxLength: 8 }),
    requiresEnforcement: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.constant(true)),
  });
}

/** Peers that differ in tags and in whether they enforce rules; the first is a connector or a host. */
export function peersOf({ peerAt }: AddressPlan, routes: readonly Prefix[]): fc.Arbitrary<Peer[]> {
  const details = fc.record({
    type: fc.constantFrom('connector' as const, 'origin' as const),
    tags: fc.subarray([...tags]),
    enforcesRules: fc.option(fc.constant(true as const), { nil: undefined, freq: 4 }),
    followsRelay: fc.option(fc.constant(true as const), { nil: undefined }),
    routes: fc.subarray([...routes]),
    /** The connector that a phone dials; null for any. */
    dials: fc.constantFrom(undefined, undefined, undefined, undefined, 1, 1, 2, null),
  });
  return fc.array(details, { minLength: 2, maxLength: 6 }).map((all) =>
    all.map(({ enforcesRules, followsRelay, dials, ...each }, index) => {
      const common = { tags: each.tags, address: peerAt(index + 1) };
      // A phone is reached through connectors alone, and applies no rules.
      if (dials !== undefined && index > 0)
        return peer(index + 1, { ...common, type: 'admin_device', routes: [], via: { connector: dials } });
      return peer(index + 1, {
        ...each,
        ...common,
        ...(enforcesRules && { enforcesRules }),
        ...(followsRelay && { followsRelay }),
        endpoint: each.type === 'connector' ? dialled(index + 1) : null,
      });
    }),
  );
}

/** A closed network of either family. */
export const closedNetworks: fc.Arbitrary<NetworkMap & { readonly rules: AccessRules }> = fc
  .constantFrom(plans[4], plans[6])
  .chain((plan) =>
    fc.subarray([...plan.routes]).chain((routes) =>
      fc.record({ peers: peersOf(plan, routes), rules: accessRules(plan) }).map(({ peers, rules }) => ({
        ...network(peers, { cidr: plan.range, routes }),
        rules,
      })),
    ),
  );

/** The edges of all prefixes of a plan, with their neighbours. */
function edgesOf({ range, routes, named }: AddressPlan): readonly Address[] {
  const family = familyOf(range);
  const most = family === 4 ? 2n ** 32n : 2n ** 128n;
  const numbers = [...routes, ...named, range]
    .filter((each) => familyOf(each) === family)
    .map(rangeOf)
    .flatMap(({ first, last }) => [first - 1n, first, first + 1n, (first + last) / 2n, last, last + 1n])
    .filter((number) => number >= 0n && number < most);
  return [...new Set(numbers)].map((number) => addressIn(family, number));
}

const edges = { 4: edgesOf(plans[4]), 6: edgesOf(plans[6]) };

/** Flows between any addresses. */
export function flowsOf(map: NetworkMap): fc.Arbitrary<Flow> {
  const peers = map.peers.map((each) => each.address);
  const ends = fc.oneof(fc.constantFrom(...edges[familyOf(map.cidr)]), fc.constantFrom(...peers));
  return fc.tuple(ends, ends, traffic).map(([from, to, rest]) => ({ from, to, ...rest }));
}

const traffic: fc.Arbitrary<Pick<Flow, 'protocol' | 'port' | 'isEcho'>> = fc.oneof(
  fc.record({ protocol: fc.constantFrom('tcp' as const, 'udp' as const), port: fc.constantFrom(...flowPorts) }),
  fc.constantFrom(
    { protocol: 'icmp' as const, port: null },
    { protocol: 'icmp' as const, port: null, isEcho: true },
    { protocol: 'other' as const, port: null },
  ),
);
