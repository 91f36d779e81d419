import type { Backoff } from '../../core/backoff.ts';
import type { HostEvent, Watch } from '../host.ts';
import { type Start, start as startHere } from '../run.ts';
import { keepMonitor, type Monitor } from './keep-monitor.ts';
import { parseEvent, tellsLoss } from './parse-event.ts';
import { parseFirewallEvent, tellsFirewallLoss } from './parse-firewall-event.ts';

/**
 * One line for each event. As text, because `ip -json monitor` prints text too (6.1) or, by version, JSON that is none; and
 * without details, because among these is a link's alias, which may hold a line's end. `netconf` tells of forwarding.
 */
const ipMonitor: Monitor = {
  tool: 'ip',
  args: ['-oneline', 'monitor', 'link', 'address', 'route', 'rule', 'netconf'],
  /** NETLINK_ROUTE */
  protocol: 0,
  read: parseEvent,
  tellsLoss,
};

/**
 * As text, one line for each object; `ruleset` leaves out packet traces and generations. It tells of everybody's tables, and
 * we drop most lines but those of ours.
 */
const nftMonitor: Monitor = {
  tool: 'nft',
  args: ['monitor', 'ruleset'],
  /** NETLINK_NETFILTER */
  protocol: 12,
  read: parseFirewallEvent,
  tellsLoss: tellsFirewallLoss,
};

type Listener = (event: HostEvent) => void;

/** {@link Host.watch} through one `ip monitor`. */
export function watchEvents(listener: Listener, start: Start = startHere, backoff?: Backoff): Promise<Watch> {
  return keepMonitor(ipMonitor, listener, start, backoff);
}

/** {@link Host.watchFirewall} through one `nft monitor`. */
export function watchFirewall(listener: Listener, start: Start = startHere, backoff?: Backoff): Promise<Watch> {
  return keepMonitor(nftMonitor, listener, start, backoff);
}
