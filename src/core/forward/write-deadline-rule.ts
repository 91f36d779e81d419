/**
 * Deadline rules in nft's words (nft(8)): named sets, of which the elements of some have timeouts.
 *
 * @module
 */
import type { DeadlineRule } from './deadline-rules.ts';
import type { FirewallRule } from './firewall-rule.ts';

/** The addresses of peers that expire; those of them that have not; the tunnel, while the map is valid. */
const sets = { expiring: 'expiring', unexpired: 'unexpired', valid: 'valid' } as const;

/** nft and the kernel take no timeout without a bound; a longer one is as good as none. */
const longestSeconds = 3650 * 86_400;

export function isDeadlineRule(rule: FirewallRule): rule is DeadlineRule {
  return rule.rule === 'refuse-expired' || rule.rule === 'refuse-outdated';
}

export function writeDeadlineRule(link: string, { rule, way }: DeadlineRule): string {
  const [name, end] = way === 'in' ? ['iifname', 'saddr'] : ['oifname', 'daddr'];
  if (rule === 'refuse-outdated') return `${name} "${link}" ${name} != @${sets.valid} drop`;
  return `${name} "${link}" ip ${end} @${sets.expiring} ip ${end} != @${sets.unexpired} drop`;
}

/** What the elements of a rule's sets follow from: a rule with other deadlines is another rule. */
export function describeDeadlines(rule: DeadlineRule): string {
  if (rule.rule === 'refuse-outdated') return `${rule.until}`;
  return rule.peers.map(({ address, at }) => `${address} ${at}`).join();
}

/**
 * The sets of these rules, with the elements that keep open what has not ended.
 *
 * @param now milliseconds since 1970 by the clock of the service; null closes everything
 */
export function writeSets(link: string, rules: readonly FirewallRule[], now: number | null): string[] {
  const deadlines = rules.filter(isDeadlineRule);
  const expiry = deadlines.find((rule) => rule.rule === 'refuse-expired');
  const age = deadlines.find((rule) => rule.rule === 'refuse-outdated');
  const withTimeout = (element: string, at: number) => {
    const seconds = now === null ? 0 : Math.min(Math.ceil((at - now) / 1000), longestSeconds);
    return seconds > 0 ? [`${element} timeout ${formatSeconds(seconds)}`] : [];
  };
  const expiring = expiry?.rule === 'refuse-expired' ? expiry.peers : [];
  return [
    ...(expiring.length === 0
      ? []
      : [
          writeSet(
            sets.expiring,
            'ipv4_addr',
            '',
            expiring.map(({ address }) => address),
          ),
          writeSet(
            sets.unexpired,
            'ipv4_addr',
            'flags timeout; ',
            expiring.flatMap(({ address, at }) => withTimeout(address, at)),
          ),
        ]),
    ...(age?.rule === 'refuse-outdated'
      ? [writeSet(sets.valid, 'ifname', 'flags timeout; ', withTimeout(`"${link}"`, age.until))]
      : []),
  ];
}

function writeSet(name: string, type: string, flags: string, elements: readonly string[]): string {
  const content = elements.length === 0 ? '' : `elements = { ${elements.join(', ')} } `;
  return `  set ${name} { type ${type}; ${flags}${content}}\n`;
}

/** With days apart: nft reads at most eight digits of a unit. */
function formatSeconds(seconds: number): string {
  const days = Math.floor(seconds / 86_400);
  const rest = seconds % 86_400;
  return `${days > 0 ? `${days}d` : ''}${rest > 0 || days === 0 ? `${rest}s` : ''}`;
}
