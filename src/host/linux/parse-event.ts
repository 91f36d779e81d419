import { printable } from '../../core/errors.ts';
import type { HostEvent } from '../host.ts';

/**
 * Reads a line of `ip -oneline monitor link address route rule netconf` (iproute2 6.1); null for one that tells of no change
 * that matters: of netconf, only what switches forwarding, and the source filter of one interface. A link's name holds neither space nor colon, as the kernel
 * sees to; of one with an `@`, only what is before it is told.
 */
export function parseEvent(line: string): HostEvent | null {
  const deleted = line.startsWith(deletedMark);
  const text = deleted ? line.slice(deletedMark.length) : line;

  // First, because `inet default forwarding on` reads like a route.
  if (netconfLine.test(text)) return readForwarding(text);
  const link = linkLine.exec(text)?.[1];
  // A bridge also announces each port that leaves it as a deleted link, but without a queueing discipline.
  if (link) return { kind: 'link', link: printable(link), removed: deleted && text.includes(' qdisc ') };
  const owner = addressLine.exec(text)?.[1];
  if (owner) return { kind: 'address', link: printable(owner), removed: deleted };
  if (ruleLine.test(text)) return { kind: 'rule', link: null, removed: deleted };
  if (routeLine.test(text)) return { kind: 'route', link: findOnlyHop(text), removed: deleted };
  return null;
}

/** Whether `ip` says that the kernel had more to tell than the socket could hold (ENOBUFS); it goes on after that. */
export function tellsLoss(line: string): boolean {
  return line.startsWith('netlink receive error');
}

function readForwarding(text: string): HostEvent | null {
  const name = (forwardingLine.exec(text) ?? sourceFilterLine.exec(text))?.[1];
  if (name === undefined) return null;
  const link = name === 'all' || name === 'default' ? null : printable(name);
  return { kind: 'sysctl', link, removed: false };
}

const deletedMark = 'Deleted ';

/** `inet all …`; older versions print `ipv4 all …` and `ipv4 dev eth0 …`. */
const netconfLine = /^(?:inet6?|ipv[46]) /;
/** And nothing else: a link that is made is announced with all its settings. No link may be named `all` or `default`. */
const forwardingLine = /^\S{1,5} (?:dev )?(\S{1,15}) forwarding (?:on|off) *$/;
/** Of one interface alone: what is set for all never loosens what is set for one. */
const sourceFilterLine = /^\S{1,5} (?:dev )?(?!all |default )(\S{1,15}) rp_filter (?:off|loose|strict) *$/;

/** `3: v0@v1: <BROADCAST,…`; bounds, because names have 15 characters and a line may have 65,536. */
const linkLine = /^\d{1,10}: ([^\s:]{1,15}?)(?:@[^\s:]{1,15})?: </;
/** `3: v0    inet 10.1.0.1/24 …` */
const addressLine = /^\d{1,10}: ([^\s:]{1,15}) +inet6? /;
/** `32765:⇥from all fwmark 0x5 lookup 77` */
const ruleLine = /^\d{1,10}:\t/;
/** `10.9.0.0/16 via …`, `default dev …`, `unreachable fd05::/64 dev …` */
const routeLine = /^(?:[a-z]{1,20} )?(?:default|(?!\d{1,10}: )[\da-f]{0,4}[.:][\da-f.:]{1,45}(?:\/\d{1,3})?) /;
const hop = / dev (\S{1,15})(?!\S)/g;

function findOnlyHop(text: string): string | null {
  const links = new Set([...text.matchAll(hop)].map(([, link = '']) => link));
  const [only] = links;
  return only !== undefined && links.size === 1 ? printable(only) : null;
}
