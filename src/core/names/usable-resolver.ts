import { describeHeldNamesPort } from '../errors/index.ts';
import type { FileResolver, LinkDnsSettings, OwnDns, ResolverSettings, Underlay } from '../host-state/actual.ts';
import { type Address, parseAddress } from '../net/cidr.ts';
import { type DnsServer, type DomainServers, formatServer } from './split-dns.ts';
import { namesPort } from './zone.ts';

/** The resolver of this host, as observed. */
export interface FoundResolver {
  /** Null without one that has servers for single domains, undefined if not requested. */
  readonly resolver: ResolverSettings | null | undefined;
  /** True if the DNS settings of the interface are ours. */
  readonly isOwn: boolean;
}

/**
 * Why the resolver of this host can take no domain; null if it can.
 *
 * @param failure why the resolver did not take the last file; undefined if it did
 */
export function findObstacle(
  { resolver, isOwn }: FoundResolver,
  { own, underlay }: { readonly own: DnsServer; readonly underlay: Underlay },
  failure?: string,
): string | null {
  if (!resolver) return describeMissing(underlay, failure);
  // Only a change of our file needs its folder.
  if (resolver.program !== 'systemd-resolved') return isIntact(resolver, own) ? null : resolver.trouble;
  return resolver.own !== null && !isOwn ? 'another program has set DNS servers on the interface' : null;
}

/**
 * The address at which the daemon serves names. A file of Linux stays when the tunnel is gone: its
 * queries must then fail on this host, and not go to the network around it. macOS has only one
 * loopback address.
 */
export function findServingAddress(
  resolver: Pick<ResolverSettings, 'program'> | null | undefined,
  own: Address,
): Address {
  const isFile = resolver && !['systemd-resolved', 'macOS'].includes(resolver.program);
  return isFile ? parseAddress(own.replace(/^\d+/, '127')) : own;
}

/** Why the daemon does not serve names at the address that it shall have, and what to do. */
export function describeTaken(taken: Address): { readonly text: string; readonly remedy: string } {
  return describeHeldNamesPort(taken, namesPort);
}

/**
 * True if the resolver shall use the daemon. A file names it also while it is down: each change of
 * the file may restart the resolver.
 */
export function usesDaemon({ resolver }: Pick<FoundResolver, 'resolver'>, own: DnsServer): boolean {
  if (!resolver) return false;
  const isKept = resolver.program !== 'systemd-resolved' && resolver.own?.servers.includes(formatServer(own));
  return resolver.isServing || isKept === true;
}

/** True if our file leads to the daemon. */
function isIntact(resolver: FileResolver, own: DnsServer): resolver is FileResolver & { readonly own: OwnDns } {
  return resolver.own?.servers.join() === formatServer(own);
}

/**
 * True if settings of the interface can only be ours: servers of the network, for routing domains
 * alone. An older version writes a state without `ownsDns`.
 */
export function isRecognized(found: LinkDnsSettings | null, servers: readonly DnsServer[]): boolean {
  if (found === null || found.servers.length === 0 || found.isDefaultRoute) return false;
  const known = servers.map(formatServer);
  return found.servers.every((each) => known.includes(each)) && found.domains.every((each) => each.startsWith('~'));
}

/** A daemon that runs serves no names in its first seconds, or if another program has the port. */
export const serveRemedy = 'systemctl enable --now cpn, or cpn run; if it runs, its log has the reason in a minute';

/** The settings that our file keeps for now, with the reason. */
export interface KeptFile {
  /** Null for no file. */
  readonly dns: DomainServers | null;
  /** That of the domains which it does not have. */
  readonly state: 'waiting' | 'refused';
  readonly reason: string;
}

/**
 * Limits the changes of a file, because each may restart the resolver, and a network decides how
 * often its domains change. Null if the wanted file can be written.
 *
 * @param failure why the resolver did not take the last file; undefined if it did
 */
export function keepFile(
  resolver: FoundResolver['resolver'],
  own: DnsServer,
  failure: string | undefined,
): KeptFile | null {
  if (!resolver || resolver.program === 'systemd-resolved') return null;
  const dns = isIntact(resolver, own)
    ? { servers: [own], domains: resolver.own.domains.map((each) => each.slice(1)) }
    : null;
  const lasting = resolver.trouble ?? resolver.unstartable ?? failure;
  if (lasting !== undefined) return { dns, state: 'refused', reason: lasting };
  const reason = 'it follows in a minute: each change may restart the resolver';
  return dns !== null && resolver.isRecent ? { dns, state: 'waiting', reason } : null;
}

const capable = 'systemd-resolved, dnsmasq, unbound, or NetworkManager with dns=dnsmasq';

function describeMissing({ resolvers: [first], stubs = [] }: Underlay, failure: string | undefined): string {
  const stub = stubs.find(({ address }) => address === first);
  if (stub?.isListening === false) {
    const cause = failure === undefined ? '' : `; ${failure}`;
    return `the local resolver is not running: nothing listens at ${stub.address}, which /etc/resolv.conf names; start it${cause}`;
  }
  const local = stub && `the local resolver ${stub.address}${stub.program === null ? '' : ` (${stub.program})`}`;
  const present = local ?? (first === undefined ? 'no resolver' : `${first}, which is no program of this host`);
  return `it needs a local resolver with servers for each domain: ${capable}; this host has ${present}`;
}
