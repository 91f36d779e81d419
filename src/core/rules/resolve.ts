import type { AccessRules, PortRange, Rule, Selector } from '../map/access-rules.ts';
import type { NetworkMap, Peer } from '../map/model.ts';
import { type Address, familyOf, hostPrefix, type Prefix } from '../net/cidr.ts';
import { type NumberRange, numbersOf, outsideOf, splitByCoverage } from '../net/number-ranges.ts';
import { enforcementIn } from './enforcement.ts';
import { type Direction, type Layer, layRoutes, localSelectors, rangeOfSelector } from './route-layers.ts';
import { mergePorts } from './selector.ts';

/** The protocols and ports that rules allow together. An empty list allows none. */
export interface Admitted {
  /** True for every protocol and port. */
  readonly everything: boolean;
  readonly tcp: readonly PortRange[];
  readonly udp: readonly PortRange[];
  readonly icmp: boolean;
}

/** Addresses of the other side, and all that they are allowed. */
export interface AdmittedRange {
  readonly range: NumberRange;
  readonly admitted: Admitted;
}

/** What is allowed between some addresses of this side and each address of the other side. */
export interface Access {
  /** Peers that are allowed more than the others. */
  readonly peers: readonly AdmittedRange[];
  /** Ranges outside the network's own that are allowed more. They do not overlap. */
  readonly ranges: readonly AdmittedRange[];
  readonly others: Admitted;
  /** Peers that are allowed nothing, whatever the others are. */
  readonly refused: readonly Address[];
}

/** Addresses that a host stands for: its own, or parts of the routes that it serves. */
export interface LocalEnd {
  readonly ranges: readonly NumberRange[];
  /** Connections to these addresses, and connections from them. */
  readonly inward: Access;
  readonly outward: Access;
  /** The index of an earlier end that allows more here: that of a wider prefix. Absent for none. */
  readonly wider?: number;
}

type Ruled = Pick<NetworkMap, 'cidr' | 'peers'> & { readonly rules: AccessRules };

/**
 * Resolves the rules for one host: by its own address, and by the parts of the routes that it
 * serves. The first end has the host's own address. Agrees with `evaluate`, except that rules
 * beyond all bounds allow nothing: a service must not exhaust its hosts.
 */
export function resolveAccess(map: Ruled, self: Peer, served: readonly Prefix[]): readonly LocalEnd[] {
  const layers = layRules(map, self, served);
  if (layers === null) return resolveAccess(withoutRules(map), self, served);
  const resolve = accessResolver(map, self);
  return layers.map(({ rules: { inward, outward }, ...end }) => ({
    ...end,
    inward: resolve('inward', inward),
    outward: resolve('outward', outward),
  }));
}

/** True if the rules are beyond all bounds for a host, so that it allows nothing. */
export function areExcessive(map: Ruled, self: Peer, served: readonly Prefix[]): boolean {
  return layRules(map, self, served) === null;
}

/** Null for rules beyond all bounds. */
function layRules(map: Ruled, self: Peer, served: readonly Prefix[]): readonly Layer[] | null {
  if (countSelectors(map.rules) > mostSelected) return null;
  const own: Layer = {
    ranges: [numbersOf(hostPrefix(self.address))],
    rules: { inward: rulesToward(map, self), outward: rulesOf(map.rules, self, 'outward') },
  };
  const routes = served.filter((route) => familyOf(route) === familyOf(map.cidr));
  const layers = layRoutes(own, routes, map.cidr, map.rules);
  return isExcessive(map, layers) ? null : layers;
}

/** Devices to which a connector alone applies the rules, and what may reach them. */
export type DeviceEnd = Pick<LocalEnd, 'ranges' | 'inward'>;

/** Resolves the rules for peers that are reached through this host alone, such as phones. */
export function resolveDevices(map: Ruled, self: Peer, devices: readonly Peer[]): readonly DeviceEnd[] {
  const toward = (device: Peer) => rulesToward(map, device);
  const groups = [...Map.groupBy(devices, (device) => toward(device).join()).values()];
  const layers = groups.map((group): Layer => {
    const ranges = group.map(({ address }) => numbersOf(hostPrefix(address)));
    return { ranges, rules: { inward: group.slice(0, 1).flatMap(toward), outward: [] } };
  });
  if (isExcessive(map, layers)) return resolveDevices(withoutRules(map), self, devices);
  const resolve = accessResolver(map, self);
  return layers.map(({ ranges, rules }) => ({ ranges, inward: resolve('inward', rules.inward) }));
}

function withoutRules(map: Ruled): Ruled {
  return { ...map, rules: { ...map.rules, rules: [] } };
}

/** The rules with this peer as a destination: none if enforcement is required, and nothing does. */
function rulesToward(map: Ruled, peer: Peer): number[] {
  const isRefused = map.rules.requiresEnforcement && enforcementIn(map)(peer) === 'nothing';
  return isRefused ? [] : rulesOf(map.rules, peer, 'inward');
}

function rulesOf({ rules }: AccessRules, peer: Peer, direction: Direction): number[] {
  return indexesOf(rules, (rule) => localSelectors(rule, direction).some((selector) => selectsPeer(selector, peer)));
}

/** Sixteen times what our control plane allows per host. */
const mostSelected = 2 ** 20;
/** The chains and sets of an end, as a number of elements. */
const endCost = 64;

/** True if the rules select more pairs of an address and a port than a host can handle. */
function isExcessive({ peers, rules: { rules } }: Ruled, layers: readonly Layer[]): boolean {
  const tagged = new Map<string, number>();
  for (const { tags = [] } of peers) for (const tag of tags) tagged.set(tag, (tagged.get(tag) ?? 0) + 1);
  const sizeOf = (selector: Selector) => (selector.kind === 'tag' ? (tagged.get(selector.tag) ?? 0) : 1);
  const sizes = rules.map(({ from, to, ports }) => {
    const factor = Math.max(1, ports.length);
    return { inward: factor * sum(from.map(sizeOf)), outward: factor * sum(to.map(sizeOf)) };
  });
  const sizeIn = (direction: Direction, { rules }: Layer) =>
    sum(rules[direction].map((index) => sizes[index]?.[direction] ?? 0));
  const costs = layers.map(
    (layer) => endCost + layer.ranges.length + sizeIn('inward', layer) + sizeIn('outward', layer),
  );
  return sum(costs) > mostSelected;
}

function countSelectors({ rules }: AccessRules): number {
  return sum(rules.map(({ from, to }) => from.length + to.length));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

/** Returns a function that resolves the other side of the given rules. */
function accessResolver({ cidr, peers, rules: { rules, requiresEnforcement } }: Ruled, self: Peer) {
  const others = peers.filter(({ id }) => id !== self.id);
  const enforcedBy = enforcementIn({ peers });
  const byId = new Map(others.map((peer) => [`${peer.id}`, peer]));
  const byTag = new Map<string, Peer[]>();
  for (const peer of others) for (const tag of peer.tags ?? []) append(byTag, tag, peer);
  const admittedBy = new Map<string, Admitted>();
  const admit = (indexes: readonly number[]): Admitted => {
    const key = indexes.join();
    const known = admittedBy.get(key);
    if (known !== undefined) return known;
    const admitted = joinRules(indexes.flatMap((index) => rules[index] ?? []));
    admittedBy.set(key, admitted);
    return admitted;
  };
  return (direction: Direction, indexes: readonly number[]): Access => {
    const forAll: number[] = [];
    const forPeers = new Map<Peer, number[]>();
    const forRanges: (NumberRange & { readonly index: number })[] = [];
    for (const index of indexes) {
      const rule = rules[index];
      if (rule === undefined) continue;
      const selectors = direction === 'inward' ? rule.from : rule.to;
      if (selectors.some(({ kind }) => kind === 'any')) forAll.push(index);
      for (const selector of selectors) {
        for (const peer of selectedPeers(selector, byId, byTag)) append(forPeers, peer, index);
        const range = selector.kind === 'any' ? null : rangeOfSelector(selector, familyOf(cidr));
        if (range !== null) forRanges.push({ ...range, index });
      }
    }
    const union = (more: readonly number[]) => admit(distinct([...forAll, ...more]));
    const general = union([]);
    // Of a peer whose host enforces nothing, connections to it are refused where they begin.
    const isRefused = (peer: Peer) => direction === 'outward' && requiresEnforcement && enforcedBy(peer) === 'nothing';
    const refused = indexes.length === 0 ? [] : others.filter(isRefused).map(({ address }) => address);
    const special = [...forPeers].flatMap(([peer, more]): AdmittedRange[] => {
      const admitted = union(more);
      if (admitted === general || isRefused(peer)) return [];
      return [{ range: numbersOf(hostPrefix(peer.address)), admitted }];
    });
    const ranges = splitByCoverage(forRanges).flatMap(({ first, last, covering }) => {
      const admitted = union(covering.map(({ index }) => index));
      if (admitted === general) return [];
      return outsideOf({ first, last }, numbersOf(cidr)).map((range) => ({ range, admitted }));
    });
    return { peers: special, ranges, others: general, refused };
  };
}

const nothing: Admitted = { everything: false, tcp: [], udp: [], icmp: false };
const everything: Admitted = { ...nothing, everything: true };
const allPorts: PortRange = { first: 0, last: 65_535 };

function joinRules(rules: readonly Rule[]): Admitted {
  if (rules.length === 0) return nothing;
  // A rule with ports is for TCP and UDP only.
  if (rules.some(({ protocol, ports }) => protocol === 'any' && ports.length === 0)) return everything;
  const portsOf = (wanted: 'tcp' | 'udp') =>
    mergePorts(
      rules.flatMap(({ protocol, ports }) => {
        if (protocol !== wanted && protocol !== 'any') return [];
        return ports.length === 0 ? allPorts : ports;
      }),
    );
  return {
    everything: false,
    tcp: portsOf('tcp'),
    udp: portsOf('udp'),
    icmp: rules.some(({ protocol, ports }) => protocol === 'icmp' && ports.length === 0),
  };
}

function selectsPeer(selector: Selector, peer: Peer): boolean {
  if (selector.kind === 'peer') return `${selector.id}` === `${peer.id}`;
  return selector.kind === 'any' || (selector.kind === 'tag' && (peer.tags?.includes(selector.tag) ?? false));
}

function selectedPeers(
  selector: Selector,
  byId: ReadonlyMap<string, Peer>,
  byTag: ReadonlyMap<string, readonly Peer[]>,
): readonly Peer[] {
  if (selector.kind === 'tag') return byTag.get(selector.tag) ?? [];
  const peer = selector.kind === 'peer' ? byId.get(`${selector.id}`) : undefined;
  return peer === undefined ? [] : [peer];
}

function indexesOf(rules: readonly Rule[], matches: (rule: Rule) => boolean): number[] {
  return rules.flatMap((rule, index) => (matches(rule) ? index : []));
}

function distinct<Value>(values: readonly Value[]): Value[] {
  return [...new Set(values)];
}

function append<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
