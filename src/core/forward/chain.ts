import { type Prefix, rangeOf } from '../cidr.ts';
import { isDefaultRoute } from '../full-tunnel.ts';
import type { ForwardPath } from './path.ts';

/** A table of packet rules with a say in what is forwarded over IPv4, as far as it can be read. */
export interface FilterTable {
  readonly family: 'ip' | 'inet';
  readonly name: string;
  readonly chains: ReadonlyMap<string, FilterChain>;
}

export interface FilterChain {
  readonly name: string;
  /** What becomes of forwarded packets that no rule decided on; null of a chain that only other chains lead to. */
  readonly policy: 'accept' | 'drop' | null;
  readonly rules: readonly FilterRule[];
}

export interface FilterRule {
  readonly conditions: readonly Condition[];
  readonly verdict: Verdict;
}

/** `none` leaves a packet to the next rule; `unknown` ends its way through the chain, nobody knows how. */
export type Verdict =
  | { readonly does: 'accept' | 'drop' | 'reject' | 'return' | 'none' | 'unknown' }
  | { readonly does: 'jump' | 'goto'; readonly chain: string };

export type Condition =
  /** The names may end in `*`. */
  | { readonly on: 'iif' | 'oif'; readonly not: boolean; readonly names: readonly string[] }
  | { readonly on: 'from' | 'to'; readonly not: boolean; readonly ranges: readonly AddressRange[] }
  | { readonly on: 'state'; readonly not: boolean; readonly states: readonly string[] }
  /** The state of the connection as iptables tests it: nft does not tell for which. */
  | { readonly on: 'some state' }
  /** True of no IPv4 packet. */
  | { readonly on: 'nothing' }
  | { readonly on: 'unknown' };

/** Both ends belong to it. */
export interface AddressRange {
  readonly first: bigint;
  readonly last: bigint;
}

/** Whether a rule is for all packets of a path, for none of them, or perhaps for some. */
export type Answer = 'yes' | 'no' | 'maybe';

/** Whether a rule is for the packets of a path. */
export function judgeRule({ conditions, verdict }: FilterRule, path: ForwardPath): Answer {
  const answers = conditions.map((condition) => judge(condition, path, verdict));
  if (answers.includes('no')) return 'no';
  return answers.includes('maybe') ? 'maybe' : 'yes';
}

/** True when somebody who wrote the rule had this very path in mind: it names the tunnel, or an end of the path. */
export function isAboutPath({ conditions }: FilterRule, path: ForwardPath, link: string): boolean {
  return conditions.some((condition) => {
    if (condition.on === 'iif' || condition.on === 'oif') return !condition.not && condition.names.includes(link);
    if (condition.on !== 'from' && condition.on !== 'to') return false;
    const end = path[condition.on];
    if (condition.not || isDefaultRoute(end)) return false;
    return condition.ranges.every((range) => encloses(rangeOf(end), range));
  });
}

function judge(condition: Condition, path: ForwardPath, verdict: Verdict): Answer {
  switch (condition.on) {
    case 'iif':
    case 'oif':
      return unless(condition.not, judgeName(path[condition.on], condition.names));
    case 'from':
    case 'to':
      return unless(condition.not, judgeRange(path[condition.on], condition.ranges));
    case 'state':
      return unless(condition.not, condition.states.includes(path.state) ? 'yes' : 'no');
    case 'some state':
      // Firewalls accept connections that are known, and drop such packets as belong to none.
      return path.state === 'established' && verdict.does === 'accept' ? 'yes' : 'maybe';
    case 'nothing':
      return 'no';
    case 'unknown':
      return 'maybe';
  }
}

function judgeName(name: string | null, names: readonly string[]): Answer {
  if (name === null) return 'maybe';
  const fits = (each: string) => (each.endsWith('*') ? name.startsWith(each.slice(0, -1)) : name === each);
  return names.some(fits) ? 'yes' : 'no';
}

function judgeRange(prefix: Prefix, ranges: readonly AddressRange[]): Answer {
  const whole = rangeOf(prefix);
  if (ranges.some((range) => encloses(range, whole))) return 'yes';
  return ranges.some(({ first, last }) => first <= whole.last && whole.first <= last) ? 'maybe' : 'no';
}

function encloses(outer: AddressRange, inner: AddressRange): boolean {
  return outer.first <= inner.first && inner.last <= outer.last;
}

function unless(not: boolean, answer: Answer): Answer {
  if (!not || answer === 'maybe') return answer;
  return answer === 'yes' ? 'no' : 'yes';
}
