/**
 * Deadline rules in nft's words (nft(8)): named sets, of which the elements of some have timeouts.
 *
 * @module
 */
import { InvalidValue } from '../errors/index.ts';
import { type Family, familyOf } from '../net/cidr.ts';
import { probedPort } from '../net/connector-answer.ts';
import type { DeadlineRule } from './deadline-rules.ts';
import type { ExpiringRange } from './expiring-ranges.ts';
import type { FirewallRule } from './firewall-rule.ts';
import { protocolOf } from './nft-words.ts';

/** The ranges of peers that expire; those of them that have not. */
const rangeSets = {
  4: { expiring: 'expiring', unexpired: 'unexpired' },
  6: { expiring: 'expiring6', unexpired: 'unexpired6' },
} as const satisfies Record<Family, object>;

/** The tunnel, while the map is valid. */
const valid = 'valid';

/** nft and the kernel take no timeout without a bound; a longer one is as good as none. */
const longestSeconds = 3650 * 86_400;

export function isDeadlineRule(rule: FirewallRule): rule is DeadlineRule {
  return rule.rule === 'refuse-expired' || rule.rule === 'refuse-outdated' || rule.rule === 'refuse-probes';
}

export function writeDeadlineRule(link: string, rule: DeadlineRule): string {
  if (rule.rule === 'refuse-probes') {
    const answer = familyOf(rule.at) === 4 ? 'icmp type prot-unreachable' : 'icmpv6 type addr-unreachable';
    const probe = `${protocolOf(rule.at)} daddr ${rule.at} tcp dport ${probedPort}`;
    return `iifname "${link}" iifname != @${valid} ${probe} reject with ${answer}`;
  }
  const [name, end] = rule.direction === 'in' ? ['iifname', 'saddr'] : ['oifname', 'daddr'];
  if (rule.rule === 'refuse-outdated') return `${name} "${link}" ${name} != @${valid} drop`;
  const first = firstOf(rule.ranges);
  const { expiring, unexpired } = rangeSets[familyOf(first)];
  const field = `${protocolOf(first)} ${end}`;
  return `${name} "${link}" ${field} @${expiring} ${field} != @${unexpired} drop`;
}

/** What the elements of a rule's sets follow from: a rule with other deadlines is another rule. */
export function describeDeadlines(rule: DeadlineRule): string {
  if (rule.rule !== 'refuse-expired') return `${rule.until}`;
  return rule.ranges.map((range) => `${writeRange(range)} ${range.at}`).join();
}

/**
 * The sets of these rules, with the elements that keep open what has not ended.
 *
 * @param now milliseconds since 1970 by the clock of the service; null closes everything
 */
export function writeSets(link: string, rules: readonly FirewallRule[], now: number | null): string[] {
  const withTimeout = (element: string, at: number) => {
    const seconds = now === null ? 0 : Math.min(Math.ceil((at - now) / 1000), longestSeconds);
    return seconds > 0 ? [`${element} timeout ${formatSeconds(seconds)}`] : [];
  };
  // The rules of both directions use the same sets.
  const inward = rules.filter(isDeadlineRule).filter(({ direction }) => direction === 'in');
  return inward.flatMap((rule) => {
    if (rule.rule === 'refuse-probes') return [];
    if (rule.rule === 'refuse-outdated') {
      return [writeSet(valid, 'ifname', 'timeout', withTimeout(`"${link}"`, rule.until))];
    }
    const family = familyOf(firstOf(rule.ranges));
    const { expiring, unexpired } = rangeSets[family];
    const open = rule.ranges.flatMap((range) => withTimeout(writeRange(range), range.at));
    return [
      writeSet(expiring, `ipv${family}_addr`, 'interval', rule.ranges.map(writeRange)),
      writeSet(unexpired, `ipv${family}_addr`, 'interval, timeout', open),
    ];
  });
}

/** The timeout that each element of these rules' sets should have now, in seconds, by `set element`; 0 for one that has ended. */
export function timeoutsOf(link: string, rules: readonly FirewallRule[], now: number): ReadonlyMap<string, number> {
  const left = (at: number) => Math.max(0, Math.min((at - now) / 1000, longestSeconds));
  return new Map(
    rules.filter(isDeadlineRule).flatMap((rule): [string, number][] => {
      if (rule.rule !== 'refuse-expired') return [[`${valid} ${link}`, left(rule.until)]];
      const { unexpired } = rangeSets[familyOf(firstOf(rule.ranges))];
      return rule.ranges.map(({ first, at }) => [`${unexpired} ${first}`, left(at)]);
    }),
  );
}

function writeRange({ first, last }: Pick<ExpiringRange, 'first' | 'last'>): string {
  return first === last ? first : `${first}-${last}`;
}

function firstOf([range]: readonly ExpiringRange[]): ExpiringRange['first'] {
  if (range === undefined) throw new InvalidValue('packet rule', 'expiring', 'names no address range');
  return range.first;
}

function writeSet(name: string, type: string, flags: string, elements: readonly string[]): string {
  const content = elements.length === 0 ? '' : `elements = { ${elements.join(', ')} } `;
  return `  set ${name} { type ${type}; flags ${flags}; ${content}}\n`;
}

/** With days apart: nft reads at most eight digits of a unit. */
function formatSeconds(seconds: number): string {
  const days = Math.floor(seconds / 86_400);
  const rest = seconds % 86_400;
  return `${days > 0 ? `${days}d` : ''}${rest > 0 || days === 0 ? `${rest}s` : ''}`;
}
