import { tableOf } from '../../core/firewall.ts';
import type { HostEvent } from '../host.ts';

/**
 * Reads a line of `nft monitor ruleset` (nftables 1.0.6); null for one that is not of a table of ours. A ruleset that is
 * flushed is told rule by rule and table by table.
 */
export function parseFirewallEvent(line: string): HostEvent | null {
  const [, verb = '', link] = objectLine.exec(line) ?? [];
  return link === undefined ? null : { kind: 'firewall', link, removed: verb === 'delete' || verb === 'destroy' };
}

/** Whether `nft` says that the kernel had more to tell than the socket could hold; it goes on after that. */
export function tellsFirewallLoss(line: string): boolean {
  return line.startsWith('# ERROR: ');
}

/** `delete rule inet cpn_wg0 forward handle 3`: verb, kind of object, family, table; a link's name as parseLinkName takes it. */
const objectLine = new RegExp(`^([a-z]{1,20}) [a-z]{1,20} inet ${tableOf('')}([a-zA-Z0-9_.-]{1,15})(?: |$)`);
