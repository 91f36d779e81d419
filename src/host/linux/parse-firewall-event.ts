import { tableOf } from '../../core/firewall.ts';
import type { HostEvent } from '../host.ts';

/**
 * Reads a line of `nft monitor ruleset` (nftables 1.0.6); null for one that is neither of a table of ours nor a sign that what is
 * forwarded goes by other rules of somebody's. A ruleset that is flushed is told rule by rule and table by table.
 */
export function parseFirewallEvent(line: string): HostEvent | null {
  const [, verb = '', link] = objectLine.exec(line) ?? [];
  if (link !== undefined) return { kind: 'firewall', link, removed: removals.has(verb) };
  const [, change = ''] = forwardLine.exec(line) ?? goneLine.exec(line) ?? [];
  return change === '' ? null : { kind: 'firewall', link: null, removed: removals.has(change) };
}

/** Whether `nft` says that the kernel had more to tell than the socket could hold; it goes on after that. */
export function tellsFirewallLoss(line: string): boolean {
  return line.startsWith('# ERROR: ');
}

const removals: ReadonlySet<string> = new Set(['delete', 'destroy']);

/** `add chain ip filter FORWARD { type filter hook forward priority filter; policy drop; }`, printed for each change of the policy. */
const forwardLine = /^([a-z]{1,20}) chain (?:ip|inet) [^"]{1,300} \{ type filter hook forward /;
/** `delete table ip filter`; single rules and chains of others come and go all the time. */
const goneLine = /^(delete|destroy) table (?:ip|inet) /;
/** `delete rule inet cpn_wg0 forward handle 3`: verb, kind of object, family, table; a link's name as parseLinkName takes it. */
const objectLine = new RegExp(`^([a-z]{1,20}) [a-z]{1,20} inet ${tableOf('')}([a-zA-Z0-9_.-]{1,15})(?: |$)`);
