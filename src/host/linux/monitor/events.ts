import { tableOf } from '../../../core/forward/own-table.ts';
import type { Backoff } from '../../../core/util/backoff.ts';
import type { HostEvent, Watch } from '../../host.ts';
import { type Start, start as startHere } from '../../process/run.ts';
import { type Monitor, runMonitor } from './monitor.ts';
import { isLossReport, parseEvent } from './parse-event.ts';

/**
 * Prints one line per event; `netconf` is forwarding. As text: `ip -json monitor` prints text too
 * (6.1) or invalid JSON, by version. Without details, because an alias may contain a newline.
 */
const ipMonitor: Monitor = {
  tool: 'ip',
  args: ['-oneline', 'monitor', 'link', 'address', 'route', 'rule', 'netconf'],
  /** NETLINK_ROUTE */
  protocol: 0,
  parse: parseEvent,
  isLossReport,
};

/**
 * Prints one line of text for each object. `ruleset` leaves out packet traces and generations. It
 * reports all tables. Most lines about tables of other programs are dropped.
 */
const nftMonitor: Monitor = {
  tool: 'nft',
  args: ['monitor', 'ruleset'],
  /** NETLINK_NETFILTER */
  protocol: 12,
  parse: parseFirewallEvent,
  isLossReport: isFirewallLossReport,
};

type HostEventListener = (event: HostEvent) => void;

interface WatchOptions {
  readonly backoff?: Backoff;
  /** False for an irrelevant line of `ip monitor`. */
  readonly relevant?: (line: string) => boolean;
}

/** {@link Host.watch} through one `ip monitor`. */
export function watchEvents(
  listener: HostEventListener,
  start: Start = startHere,
  { backoff, relevant = () => true }: WatchOptions = {},
): Promise<Watch> {
  const parse = (line: string) => (relevant(line) ? parseEvent(line) : null);
  return runMonitor({ ...ipMonitor, parse }, listener, start, backoff);
}

/** {@link Host.watchFirewall} through one `nft monitor`. */
export function watchFirewall(
  listener: HostEventListener,
  start: Start = startHere,
  backoff?: Backoff,
): Promise<Watch> {
  return runMonitor(nftMonitor, listener, start, backoff);
}

/**
 * Parses a line of `nft monitor ruleset` (nftables 1.0.6). Null unless the line is about a table of
 * ours, or about another program's table or base chain for forwarded or incoming packets. When a
 * ruleset is flushed, `nft` reports each deleted rule and table.
 */
export function parseFirewallEvent(line: string): HostEvent | null {
  const [, verb = '', link] = objectLine.exec(line) ?? [];
  if (link !== undefined) return { kind: 'firewall', link, removed: removals.has(verb) };
  const [, change = ''] = filterChainLine.exec(line) ?? deletedTableLine.exec(line) ?? [];
  return change === '' ? null : { kind: 'firewall', link: null, removed: removals.has(change) };
}

/** ENOBUFS. `nft` continues after it. */
export function isFirewallLossReport(line: string): boolean {
  return line.startsWith('# ERROR: ');
}

const removals: ReadonlySet<string> = new Set(['delete', 'destroy']);

/**
 * `add chain ip filter FORWARD { type filter hook forward priority filter; policy drop; }`, printed
 * for each change of the policy.
 */
const filterChainLine = /^([a-z]{1,20}) chain (?:ip|inet) [^"]{1,300} \{ type filter hook (?:forward|input) /;
/** `delete table ip filter`. Rules and chains of other programs change too often. */
const deletedTableLine = /^(delete|destroy) table (?:ip|inet) /;
/**
 * `delete rule inet cpn_wg0 forward handle 3`: verb, kind of object, family, and the table, whose
 * name ends with an interface name as in parseLinkName.
 */
const objectLine = new RegExp(`^([a-z]{1,20}) [a-z]{1,20} inet ${tableOf('')}([a-zA-Z0-9_.-]{1,15})(?: |$)`);
