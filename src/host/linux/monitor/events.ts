import type { Backoff } from '../../../core/util/backoff.ts';
import type { HostEvent, Watch } from '../../host.ts';
import { type Start, start as startHere } from '../../process/run.ts';
import { type Monitor, runMonitor } from './monitor.ts';
import { isLossReport, parseEvent } from './parse-event.ts';
import { isFirewallLossReport, parseFirewallEvent } from './parse-firewall-event.ts';

/**
 * One line for each event. Text, because `ip -json monitor` prints text too (6.1) or invalid JSON, by version. Without details, because
 * the alias of an interface may contain a newline. `netconf` reports forwarding.
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
 * Text, one line for each object; `ruleset` leaves out packet traces and generations. It reports all tables; most lines that are not of
 * our tables are dropped.
 */
const nftMonitor: Monitor = {
  tool: 'nft',
  args: ['monitor', 'ruleset'],
  /** NETLINK_NETFILTER */
  protocol: 12,
  parse: parseFirewallEvent,
  isLossReport: isFirewallLossReport,
};

type Listener = (event: HostEvent) => void;

/** {@link Host.watch} through one `ip monitor`. */
export function watchEvents(listener: Listener, start: Start = startHere, backoff?: Backoff): Promise<Watch> {
  return runMonitor(ipMonitor, listener, start, backoff);
}

/** {@link Host.watchFirewall} through one `nft monitor`. */
export function watchFirewall(listener: Listener, start: Start = startHere, backoff?: Backoff): Promise<Watch> {
  return runMonitor(nftMonitor, listener, start, backoff);
}
