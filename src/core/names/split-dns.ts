import type { OtherDomain } from '../host-state/actual.ts';
import type { RouteDns } from '../map/model.ts';
import type { Address, Prefix } from '../net/cidr.ts';
import { peerDomain } from './hosts-block.ts';
import { findReverseZones } from './zone.ts';

/** A DNS server, with the port that it listens on. */
export interface DnsServer {
  readonly address: Address;
  readonly port: number;
}

/** The usual port. */
export const dnsPort = 53;

/** A port other than 53 follows the address, as in resolved.conf(5). */
export function formatServer({ address, port }: DnsServer): string {
  return port === dnsPort ? address : `${address}:${port}`;
}

/** Milliseconds after which a DNS server is silent. Resolvers wait for 5 s. */
export const replyDeadline = 4_000;

/** The RCODEs by number (RFC 6895, 2.3); null where the server resolved the name. */
const ofCodes = [
  ...([null, 'FORMERR', 'SERVFAIL', null, 'NOTIMP', 'REFUSED', 'YXDOMAIN', 'YXRRSET'] as const),
  ...(['NXRRSET', 'NOTAUTH', 'NOTZONE', 'DSOTYPENI', 'RCODE12', 'RCODE13', 'RCODE14', 'RCODE15'] as const),
];

/** No reply in time, one that cannot be read, or an RCODE of a name that is not resolved. */
export const dnsFailures = ['silent', 'unreadable', ...ofCodes.filter((code) => code !== null)] as const;
export type DnsFailure = (typeof dnsFailures)[number];

/** Null for an RCODE of a server that resolved the name, such as NXDOMAIN. */
export function findFailure(rcode: number): DnsFailure | null {
  return ofCodes[rcode] ?? null;
}

/** What these servers do, such as `answers REFUSED`. */
export function describeFailure(failure: DnsFailure, { length }: readonly unknown[]): string {
  if (failure === 'silent') return length === 1 ? 'does not answer' : 'do not answer';
  const verb = length === 1 ? 'answers' : 'answer';
  return failure === 'unreadable' ? `${verb} with messages that cannot be read` : `${verb} ${failure}`;
}

export function findRemedy(failure: DnsFailure, domain: string, server: string | undefined): string {
  if (failure === 'silent') return `cpn explain ${server} --protocol udp --port 53`;
  return `check that ${server} resolves ${domain} for addresses of the network`;
}

/** These servers resolve these domains, and no others. */
export interface DomainServers {
  /** In the order of preference. */
  readonly servers: readonly DnsServer[];
  /** In lower case, without a trailing dot, sorted. All names below them are included. */
  readonly domains: readonly string[];
}

/** The state of a domain of the network on this host. */
export interface DomainReport {
  readonly domain: string;
  /** Null for the names of peers. */
  readonly route: Prefix | null;
  /** A port other than 53 follows the address. */
  readonly servers: readonly string[];
  /**
   * `used`: this host resolves its names by these servers. `waiting`: it will, after a minute or
   * once the daemon runs. `silent`, `failing`: as `used`, but the servers do not answer, or answer
   * each query with a failure.
   */
  readonly state: 'used' | 'silent' | 'failing' | 'waiting' | 'refused';
  /** Why it is not used; null if it is. */
  readonly reason: string | null;
}

/** Domains of peers, and reverse zones: the prefix of a route determines its reverse zones. */
const reserved: readonly string[] = [peerDomain, 'arpa'];

/** The domain of home networks (RFC 8375). */
export const homeDomain = 'home.arpa';

/** True for a domain that is of no LAN, whatever its servers. */
export function isReserved(domain: string): boolean {
  return !isBelow(domain, homeDomain) && reserved.some((each) => isBelow(domain, each));
}

/** The domains behind a route, reverse zones included, that this host resolves by its servers. */
export interface ForwardedDomains {
  readonly domains: readonly string[];
  readonly servers: readonly Address[];
}

/** The names that the daemon of this host serves itself. */
export interface OwnNames {
  readonly server: DnsServer;
  /** The domain of the network's names, and reverse zones. */
  readonly domains: readonly string[];
}

export interface SplitDnsInputs {
  /** Null while the daemon serves no names. */
  readonly own: OwnNames | null;
  readonly entries: readonly RouteDns[];
  /** For each route that does not lead into the tunnel, the reason. */
  readonly untaken: ReadonlyMap<Prefix, string>;
  /** Addresses in routes that stay outside the tunnel. */
  readonly outside: readonly Address[];
  /** Names that must resolve as before: the control plane, its proxy, and endpoints. */
  readonly names: readonly string[];
  /** The domains of `entries` under which anyone may register names. */
  readonly suffixes: readonly string[];
  /** Domains of the resolver that are not of this network. */
  readonly others: readonly OtherDomain[];
  /** The interfaces of other networks, whose domains hold for all names below them. */
  readonly networks: readonly string[];
  /** Prefixes whose reverse zones stay with the other resolvers of this host. */
  readonly local: readonly Prefix[];
  /** Why this host can set no domain; null if it can. */
  readonly unusable: string | null;
}

/**
 * Chooses the domains that this host resolves through the tunnel, with the reverse zones of their
 * routes. An interface has one list of servers for all its domains (systemd-resolved.service(8)),
 * and so have our files for other resolvers. While the daemon serves names, it is the only server,
 * and forwards each query to the servers of its domain: after one failure, the resolver would turn
 * to the next server with all domains, names of peers included. Without the daemon, only the first
 * usable entry is used, and those with the same servers.
 */
export function splitDns(inputs: SplitDnsInputs): {
  readonly dns: DomainServers | null;
  readonly forwarded: readonly ForwardedDomains[];
  readonly report: readonly DomainReport[];
} {
  const { own, others, local, unusable } = inputs;
  const judged = inputs.entries.map((entry) => judgeEntry(entry, inputs));
  const usable = judged.filter(({ domains }) => domains.some(({ reason }) => reason === null));
  const isTaken = (zone: string) => others.some(({ domain }) => domain === zone);
  const forwarded = usable.map(
    ({ entry: { route, servers }, domains }): ForwardedDomains => ({
      domains: [
        ...domains.filter(({ reason }) => reason === null).map(({ domain }) => domain),
        ...findReverseZones(route, local).filter((zone) => !isTaken(zone)),
      ],
      servers,
    }),
  );
  const direct = forwarded[0]?.servers ?? [];
  const isReached = (servers: readonly Address[]) => own !== null || servers.join() === direct.join();
  const report = judged.flatMap(({ entry: { route, servers }, domains }) =>
    domains.map(({ domain, reason }): DomainReport => {
      if (reason !== null) return { domain, route, servers, state: 'refused', reason };
      if (isReached(servers)) return { domain, route, servers, state: 'used', reason: null };
      return { domain, route, servers, state: 'waiting', reason: describeOtherServers(usable[0]?.entry) };
    }),
  );
  const names = unusable === null ? (own?.domains ?? []).filter((domain) => !isTaken(domain)) : [];
  const ofPeers = own === null || unusable !== null ? [] : [reportNames(own, others)];
  const domains = [...names, ...forwarded.filter(({ servers }) => isReached(servers)).flatMap((each) => each.domains)];
  const all = [...ofPeers, ...report];
  if (domains.length === 0) return { dns: null, forwarded, report: all };
  const servers = own === null ? direct.map((address) => ({ address, port: dnsPort })) : [own.server];
  return { dns: { servers, domains: [...new Set(domains)].toSorted() }, forwarded, report: all };
}

function reportNames({ server, domains: [domain = ''] }: OwnNames, others: readonly OtherDomain[]): DomainReport {
  const reason = describeOther(domain, others);
  const servers = [formatServer(server)];
  return { domain, route: null, servers, state: reason === null ? 'used' : 'refused', reason };
}

interface JudgedEntry {
  readonly entry: RouteDns;
  /** With the reason of a refusal, or null. */
  readonly domains: readonly { readonly domain: string; readonly reason: string | null }[];
}

/** Servers that stay outside the tunnel are left out. */
function judgeEntry({ route, servers: all, domains }: RouteDns, inputs: SplitDnsInputs): JudgedEntry {
  const servers = all.filter((server) => !inputs.outside.includes(server));
  const unreachable = servers.length === 0 ? `its DNS server ${all.join(', ')} is outside the tunnel` : null;
  const untaken = inputs.untaken.get(route);
  const general =
    inputs.unusable ?? (untaken === undefined ? unreachable : `its route ${route} is not used: ${untaken}`);
  return {
    entry: { route, servers, domains },
    domains: domains.map((domain) => ({ domain, reason: general ?? findConflict(domain, inputs) })),
  };
}

function findConflict(domain: string, { names, suffixes, others, networks }: SplitDnsInputs): string | null {
  if (isReserved(domain)) return 'it is not a domain that a LAN resolves';
  if (suffixes.includes(domain)) return 'it is a public suffix, under which anyone may register names';
  const name = names.find((each) => isBelow(each, domain));
  if (name !== undefined) return `it contains ${name}, which this host needs for the tunnel`;
  const above = others.find(
    ({ link, domain: each }) => link !== null && networks.includes(link) && isBelow(domain, each),
  );
  if (above !== undefined) return `the interface ${above.link} has ${above.domain === domain ? 'it' : above.domain}`;
  return describeOther(domain, others);
}

/** Who has the domain; null if no other interface has it. */
export function describeOther(domain: string, others: readonly OtherDomain[]): string | null {
  const other = others.find((each) => each.domain === domain);
  if (other === undefined) return null;
  return other.link === null ? 'the resolver of this host has it' : `the interface ${other.link} has it`;
}

/** True if the name is the domain, or below it. */
export function isBelow(name: string, domain: string): boolean {
  const lower = name.toLowerCase().replace(/\.$/, '');
  return lower === domain || lower.endsWith(`.${domain}`);
}

function describeOtherServers(first: RouteDns | undefined): string {
  return `until the daemon serves names, only the domains behind ${first?.route} are resolved`;
}
