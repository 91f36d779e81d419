import { printable } from '../../../core/errors/index.ts';
import type { HostEvent } from '../../host.ts';

/**
 * Parses a line of `ip -oneline monitor link address route rule netconf` (iproute2 6.1). Null
 * without a relevant change; of netconf, only forwarding and one interface's source filter matter.
 *
 * An interface name has no space and no colon. Of a name with `@`, the part before it is returned.
 */
export function parseEvent(line: string): HostEvent | null {
  const deleted = line.startsWith(deletedMark);
  const text = deleted ? line.slice(deletedMark.length) : line;

  // netconf comes first, because `inet default forwarding on` matches a route too.
  if (netconfLine.test(text)) return readForwarding(text);
  const link = linkLine.exec(text)?.[1];
  // A port that leaves a bridge is reported as a deleted link too, but without a qdisc.
  if (link) return { kind: 'link', link: printable(link), removed: deleted && text.includes(' qdisc ') };
  const owner = addressLine.exec(text)?.[1];
  if (owner) return { kind: 'address', link: printable(owner), removed: deleted };
  if (ruleLine.test(text)) return { kind: 'rule', link: null, removed: deleted };
  if (routeLine.test(text)) {
    const isDefault = text.startsWith('default ');
    return { kind: 'route', link: findOnlyHop(text), removed: deleted, ...(isDefault && { isDefault }) };
  }
  return null;
}

/** ENOBUFS. `ip` continues after it. */
export function isLossReport(line: string): boolean {
  return line.startsWith('netlink receive error');
}

function readForwarding(text: string): HostEvent | null {
  const name = (forwardingLine.exec(text) ?? sourceFilterLine.exec(text))?.[1];
  if (name === undefined) return null;
  const link = name === 'all' || name === 'default' ? null : printable(name);
  return { kind: 'sysctl', link, removed: false };
}

const deletedMark = 'Deleted ';

/** `inet all …`. Older versions print `ipv4 all …` and `ipv4 dev eth0 …`. */
const netconfLine = /^(?:inet6?|ipv[46]) /;
/**
 * Matches only a line without other settings: a new interface is reported with all its settings. No
 * interface can have the name `all` or `default`.
 */
const forwardingLine = /^\S{1,5} (?:dev )?(\S{1,15}) forwarding (?:on|off) *$/;
/** Matches single interfaces only: `all` never loosens the filter of an interface. */
const sourceFilterLine = /^\S{1,5} (?:dev )?(?!all |default )(\S{1,15}) rp_filter (?:off|loose|strict) *$/;

/** `3: v0@v1: <BROADCAST,…`. Bounded: a name has up to 15 characters, a line up to 65,536. */
const linkLine = /^\d{1,10}: ([^\s:]{1,15}?)(?:@[^\s:]{1,15})?: </;
/** `3: v0    inet 10.1.0.1/24 …` */
const addressLine = /^\d{1,10}: ([^\s:]{1,15}) +inet6? /;
/** `32765:⇥from all fwmark 0x5 lookup 77` */
const ruleLine = /^\d{1,10}:\t/;
/** `10.9.0.0/16 via …`, `default dev …`, `unreachable fd05::/64 dev …` */
const routeLine = /^(?:[a-z]{1,20} )?(?:default|(?!\d{1,10}: )[\da-f]{0,4}[.:][\da-f.:]{1,45}(?:\/\d{1,3})?) /;
const hopPattern = / dev (\S{1,15})(?!\S)/g;

function findOnlyHop(text: string): string | null {
  const links = new Set([...text.matchAll(hopPattern)].map(([, link = '']) => link));
  const [only] = links;
  return only !== undefined && links.size === 1 ? printable(only) : null;
}
