import { isDefaultRoute, type Prefix, rangeOf, restorePrefix } from '../../net/cidr.ts';
import type { PacketPath } from './path.ts';

/** A table that affects forwarded or incoming IPv4 packets, as far as it can be read. */
export interface FilterTable {
  readonly family: 'ip' | 'inet';
  readonly name: string;
  readonly chains: ReadonlyMap<string, FilterChain>;
  /** Set for a table of iptables-legacy, which nft does not show. */
  readonly isLegacy?: true;
}

export interface FilterChain {
  readonly name: string;
  /** Null for a chain that only other chains jump to, and for a chain of other packets. */
  readonly hook: Hook | null;
  /** Chains at a hook run in this order (netfilter_hooks(7)). 0 for a chain without a hook. */
  readonly priority: number;
  /** The verdict on packets that no rule of a base chain decided on. */
  readonly policy: 'accept' | 'drop';
  readonly rules: readonly FilterRule[];
}

/** Where a chain filters: arriving, forwarded, incoming (to this host) or leaving packets. */
export type Hook = 'prerouting' | 'forward' | 'postrouting' | 'input';

export interface FilterRule {
  readonly conditions: readonly RuleCondition[];
  readonly verdict: RuleVerdict;
  /** What the rule does in addition to its verdict. */
  readonly effect?: RuleEffect;
}

/** Leaves a packet out of connection tracking, or hands its connection to a flowtable. */
export type RuleEffect = 'untracks' | 'offloads';

/** `none` continues with the next rule. `unknown` ends the chain with an unknown result. */
export type RuleVerdict =
  | { readonly does: 'accept' | 'drop' | 'reject' | 'return' | 'none' | 'unknown' }
  | { readonly does: 'jump' | 'goto'; readonly chain: string };

export type RuleCondition =
  /** The names may end in `*`. */
  | { readonly on: 'iif' | 'oif'; readonly not: boolean; readonly names: readonly string[] }
  | { readonly on: 'from' | 'to'; readonly not: boolean; readonly ranges: readonly ComparedRange[] }
  | { readonly on: 'state'; readonly not: boolean; readonly states: readonly string[] }
  /** Names as in protocols(5), such as `udp`. */
  | { readonly on: 'protocol'; readonly not: boolean; readonly names: readonly string[] }
  /** The destination port. */
  | { readonly on: 'port'; readonly not: boolean; readonly ranges: readonly PortRange[] }
  /** Matches packets that a rule of this host gave another destination. */
  | { readonly on: 'redirected'; readonly not: boolean }
  /** Matches the connection state as iptables tests it. nft does not show which state. */
  | { readonly on: 'some state' }
  /** A set that was not read. `end` is the end that is compared with single addresses, or null. */
  | { readonly on: 'unread'; readonly set: NamedSet; readonly end: 'from' | 'to' | null }
  /** Matches no IPv4 packet. */
  | { readonly on: 'nothing' }
  | { readonly on: 'unknown' };

/** Rules with an unknown verdict: their set is too large, or iptables-legacy is unreadable. */
export type Unread = NamedSet | { readonly kind: 'legacy' };

/** A set or map with a name, as `nft list set` takes it. */
export interface NamedSet {
  readonly kind: 'set' | 'map';
  readonly family: FilterTable['family'];
  readonly table: string;
  readonly name: string;
}

/** Both ends are included. */
export interface ComparedRange {
  readonly first: bigint;
  readonly last: bigint;
}

/** Both ends are included. */
export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** Whether a rule matches all packets of a path, no packet, or perhaps some. */
export type RuleMatch = 'yes' | 'no' | 'maybe';

export function evaluateRule({ conditions, verdict }: FilterRule, path: PacketPath): RuleMatch {
  const answers = conditions.map((condition) => evaluateCondition(condition, path, verdict));
  if (answers.includes('no')) return 'no';
  return answers.includes('maybe') ? 'maybe' : 'yes';
}

/** Returns the unread sets on which the verdict of a rule for a path depends. */
export function findUnread({ conditions, verdict }: FilterRule, path: PacketPath): NamedSet[] {
  return conditions.flatMap((condition) => {
    if (condition.on !== 'unread') return [];
    const { set, end } = condition;
    // Single addresses never cover a range, so such a rule does not drop the whole range.
    return end !== null && isDropping(verdict) && !isSingle(path[end]) ? [] : [set];
  });
}

export function isDropping({ does }: RuleVerdict): boolean {
  return does === 'drop' || does === 'reject';
}

function isSingle(prefix: Prefix): boolean {
  const { first, last } = rangeOf(prefix);
  return first === last;
}

/** True if the rule was written for this path: it names the tunnel, or an end of the path. */
export function isAboutPath({ conditions }: FilterRule, path: PacketPath, link: string): boolean {
  return conditions.some((condition) => {
    if (condition.on === 'iif' || condition.on === 'oif') return !condition.not && condition.names.includes(link);
    if (condition.on !== 'from' && condition.on !== 'to') return false;
    const end = path[condition.on];
    if (condition.not || isDefaultRoute(end)) return false;
    return condition.ranges.every((range) => encloses(rangeOf(end), range));
  });
}

/**
 * Returns the addresses of a path's far end that a rule certainly matches, if it matches only some
 * of them, else null. Only rules count that close a network to all interfaces but its own, as
 * Docker's do. Other rules may be an operator's intent.
 */
export function matchSome({ conditions, verdict }: FilterRule, path: PacketPath): readonly ComparedRange[] | null {
  const bridge = path.toward ?? path.oif;
  const isOfBridge = conditions.some(
    (condition) => condition.on === 'iif' && condition.not && bridge !== null && condition.names.includes(bridge),
  );
  if (!isOfBridge) return null;
  const whole = rangeOf(path.to);
  const ranges: ComparedRange[] = [];
  for (const condition of conditions) {
    const answer = evaluateCondition(condition, path, verdict);
    if (answer === 'yes') continue;
    if (answer === 'no' || condition.on !== 'to' || condition.not) return null;
    ranges.push(...condition.ranges.filter((range) => encloses(whole, range)));
  }
  return ranges.length > 0 ? ranges : null;
}

function evaluateCondition(condition: RuleCondition, path: PacketPath, verdict: RuleVerdict): RuleMatch {
  switch (condition.on) {
    case 'iif':
    case 'oif':
      return negate(condition.not, matchName(path[condition.on], condition.names));
    case 'from':
    case 'to':
      return negate(condition.not, matchRange(path[condition.on], condition.ranges));
    case 'state':
      // Without a connection the kernel treats the state as invalid (nft_ct_get_eval in
      // net/netfilter/nft_ct.c).
      if (path.isUntracked) return negate(condition.not, condition.states.includes('invalid') ? 'yes' : 'no');
      return negate(condition.not, condition.states.includes(path.state) ? 'yes' : 'no');
    case 'protocol':
      return path.port === undefined ? 'maybe' : negate(condition.not, condition.names.includes('udp') ? 'yes' : 'no');
    case 'port': {
      const { port } = path;
      if (port === undefined) return 'maybe';
      const isIn = condition.ranges.some(({ first, last }) => first <= port && port <= last);
      return negate(condition.not, isIn ? 'yes' : 'no');
    }
    case 'redirected':
      return path.isRedirected === false ? negate(condition.not, 'no') : 'maybe';
    case 'some state':
      // Firewalls accept known connections, and drop packets that belong to no connection.
      if (path.isUntracked) return 'maybe';
      return path.state === 'established' && verdict.does === 'accept' ? 'yes' : 'maybe';
    case 'nothing':
      return 'no';
    case 'unread':
    case 'unknown':
      return 'maybe';
  }
}

function matchName(name: string | null, names: readonly string[]): RuleMatch {
  if (name === null) return 'maybe';
  const fits = (each: string) => (each.endsWith('*') ? name.startsWith(each.slice(0, -1)) : name === each);
  return names.some(fits) ? 'yes' : 'no';
}

function matchRange(prefix: Prefix, ranges: readonly ComparedRange[]): RuleMatch {
  const whole = rangeOf(prefix);
  if (ranges.some((range) => encloses(range, whole))) return 'yes';
  return ranges.some(({ first, last }) => first <= whole.last && whole.first <= last) ? 'maybe' : 'no';
}

function encloses(outer: ComparedRange, inner: ComparedRange): boolean {
  return outer.first <= inner.first && inner.last <= outer.last;
}

function negate(not: boolean, answer: RuleMatch): RuleMatch {
  if (!not || answer === 'maybe') return answer;
  return answer === 'yes' ? 'no' : 'yes';
}

/** Where the kernel finds connections and translates sources (linux/netfilter_ipv4.h). */
const conntrack = -200;
const sourceNat = 100;

const anywhere = restorePrefix('0.0.0.0/0');

/** Returns the path as seen at a hook. Unknown properties match no rule with certainty. */
export function pathAt<Path extends PacketPath>({ hook, priority }: FilterChain, path: Path): Path {
  if (hook === 'prerouting') {
    // Replies to a masqueraded connection have this host's address until then.
    const to = path.state === 'established' ? anywhere : path.to;
    return { ...path, oif: null, toward: path.oif, to, ...(priority < conntrack && { isUntracked: true }) };
  }
  if (hook === 'postrouting') return { ...path, iif: null, ...(priority >= sourceNat && { from: anywhere }) };
  return path;
}
