import { getPublicSuffix } from 'tldts';
import type { OtherDomain } from '../host-state/actual.ts';
import type { RouteDns } from '../map/model.ts';
import type { Address, Prefix } from '../net/cidr.ts';
import { peerDomain } from './hosts-block.ts';
import { findReverseZones } from './reverse-zones.ts';

/** The DNS settings of a network's interface: these servers resolve these domains, no others. */
export interface LinkDns {
  /** In the order of preference. */
  readonly servers: readonly Address[];
  /** In lower case, without a trailing dot, sorted. All names below them are included. */
  readonly domains: readonly string[];
}

/** The state of a domain behind a route on this host. */
export interface DomainReport {
  readonly domain: string;
  readonly route: Prefix;
  readonly servers: readonly Address[];
  /** `used`: this host resolves its names by these servers. */
  readonly state: 'used' | 'refused';
  /** Why it is refused; null if it is used. */
  readonly reason: string | null;
}

/** The names of peers, and reverse zones, of which the route determines its own. */
const reserved: readonly string[] = [peerDomain, 'in-addr.arpa', 'ip6.arpa'];

export interface SplitDnsInputs {
  readonly entries: readonly RouteDns[];
  /** For each route that does not lead into the tunnel, the reason. */
  readonly untaken: ReadonlyMap<Prefix, string>;
  /** Addresses in routes that stay outside the tunnel. */
  readonly outside: readonly Address[];
  /** Names that must resolve as before: the control plane, its proxy, and endpoints. */
  readonly names: readonly string[];
  /** Domains of the resolver that are not of this network. */
  readonly others: readonly OtherDomain[];
  /** Prefixes whose reverse zones stay with the other resolvers of this host. */
  readonly local: readonly Prefix[];
  /** Why this host can set no domain; null if it can. */
  readonly unusable: string | null;
}

/**
 * Chooses the domains that this host resolves through the tunnel, with the reverse zones of their
 * routes. An interface has one list of servers for all its domains (systemd-resolved.service(8)):
 * the servers of the first usable entry.
 */
export function splitDns(inputs: SplitDnsInputs): {
  readonly dns: LinkDns | null;
  readonly report: readonly DomainReport[];
} {
  const judged = inputs.entries.map((entry) => judgeEntry(entry, inputs));
  const first = judged.find(({ domains }) => domains.some(({ reason }) => reason === null));
  const chosen = first?.entry.servers ?? [];
  const isChosen = ({ servers }: RouteDns) => servers.join() === chosen.join();
  const used = judged.filter(({ entry }) => isChosen(entry));
  const report = judged.flatMap(({ entry, domains }) =>
    domains.map(({ domain, reason }): DomainReport => {
      const why = reason ?? (isChosen(entry) ? null : describeOtherServers(first?.entry));
      return {
        domain,
        route: entry.route,
        servers: entry.servers,
        state: why === null ? 'used' : 'refused',
        reason: why,
      };
    }),
  );
  const domains = report.filter(({ state }) => state === 'used').map(({ domain }) => domain);
  if (domains.length === 0) return { dns: null, report };
  const zones = used
    .filter((each) => each.domains.some(({ reason }) => reason === null))
    .flatMap(({ entry }) => findReverseZones(entry.route, inputs.local))
    .filter((zone) => !inputs.others.some(({ domain }) => domain === zone));
  return { dns: { servers: chosen, domains: [...new Set([...domains, ...zones])].toSorted() }, report };
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

function findConflict(domain: string, { names, others }: SplitDnsInputs): string | null {
  if (reserved.some((each) => isBelow(domain, each))) return 'it is not a domain that a LAN resolves';
  if (getPublicSuffix(domain, { allowPrivateDomains: true }) === domain) {
    return 'it is a public suffix, under which anyone may register names';
  }
  const name = names.find((each) => isBelow(each, domain));
  if (name !== undefined) return `it contains ${name}, which this host needs for the tunnel`;
  const other = others.find((each) => each.domain === domain);
  if (other === undefined) return null;
  return other.link === null ? 'the resolver of this host has it' : `the interface ${other.link} has it`;
}

/** True if the name is the domain, or below it. */
function isBelow(name: string, domain: string): boolean {
  const lower = name.toLowerCase().replace(/\.$/, '');
  return lower === domain || lower.endsWith(`.${domain}`);
}

function describeOtherServers(first: RouteDns | undefined): string {
  return `an interface has one list of DNS servers for all its domains, and those of ${first?.route} come first`;
}
