import type { NetworkMap, RouteDns } from '../map/model.ts';
import { peerDomain } from '../names/hosts-block.ts';
import {
  type DnsServer,
  type DomainReport,
  type DomainServers,
  dnsPort,
  type SplitDnsInputs,
  splitDns,
} from '../names/split-dns.ts';
import {
  describeTaken,
  findObstacle,
  findServingAddress,
  isRecognized,
  keepFile,
  serveRemedy,
  usesDaemon,
} from '../names/usable-resolver.ts';
import { findReverseZones, namesPort } from '../names/zone.ts';
import type { Prefix } from '../net/cidr.ts';
import type { RouteConstraints } from '../routing/guard.ts';
import type { KeptOutside } from '../routing/kept-outside.ts';
import type { RouteReport } from '../routing/route-report.ts';
import { sameData } from '../util/same-data.ts';
import type { Desired, DesiredInputs } from './desired.ts';

interface ChosenRoutes {
  readonly map: NetworkMap;
  readonly reports: readonly RouteReport[];
  readonly keptOutside: readonly KeptOutside[];
  readonly constraints: RouteConstraints;
}

/** Chooses the domains that this host resolves: names of peers, and the domains behind routes. */
export function chooseDns(
  { options, names, label, self, link }: Pick<DesiredInputs, 'options' | 'names' | 'label' | 'self' | 'link'>,
  { map, reports, keptOutside, constraints: { underlay, newerLinks } }: ChosenRoutes,
): Pick<Desired, 'dns' | 'ownsDns' | 'keepsDnsFiles' | 'served' | 'domains'> {
  const { entries, suffixes, needed, networks, resolver, refused } = names;
  const own = { address: findServingAddress(resolver, self.address), port: namesPort };
  const ofLink = resolver?.program === 'systemd-resolved' ? resolver : null;
  const isOwn = names.isOwn || isRecognized(ofLink?.own ?? null, [own, ...entries.flatMap(serversOf)]);
  // A network that joined later yields, and so does the search domain that a DHCP server gave.
  const uplinks = new Set([...underlay.uplinks, ...(underlay.uplinks6 ?? [])]);
  const subnets = [...underlay.connected, ...underlay.routed].map(({ prefix }) => prefix);
  const domains = [`${label}.${peerDomain}`, ...findReverseZones(map.cidr, subnets)];
  const obstacle = options.dns
    ? findObstacle({ resolver, isOwn }, { own, underlay }, refused?.failure)
    : 'this host takes none (--no-dns)';
  const isUsed = usesDaemon(names, own);
  const taken = resolver?.taken === undefined ? null : describeTaken(resolver.taken);
  const unserved = taken === null ? notServed : `${taken.text}; ${taken.remedy}`;
  const inputs: SplitDnsInputs = {
    own: isUsed ? { server: own, domains } : null,
    entries,
    untaken: findUntaken(reports),
    outside: keptOutside.map(({ address }) => address),
    names: needed,
    suffixes,
    networks,
    others: (resolver?.others ?? []).filter(
      ({ link, isSearch }) => link === null || !(newerLinks.includes(link) || (isSearch && uplinks.has(link))),
    ),
    local: [map.cidr, ...subnets],
    // A file has no direct servers: with the tunnel away, queries would leave this host in clear.
    unusable: obstacle ?? (ofLink === null && !isUsed ? unserved : null),
  };
  const { dns, forwarded, report: split } = splitDns(inputs);
  const afterwards = ofLink !== null && { afterwards: splitDns({ ...inputs, own: null }).dns };
  // A file that cannot be written now is written once the names are served.
  const isServed = obstacle === null || (options.dns && resolver && ofLink === null);
  const served = isServed ? { address: own.address, label, forwarded, ...afterwards } : null;
  const hosts = `"cpn set ${link} --hosts" adds the names of peers to /etc/hosts`;
  const alternative = options.dns && !resolver && !options.hosts ? hosts : null;
  const isServing = resolver?.isServing === true;
  const report = reportAll({ domains, alternative, split, obstacle, isServing, isUsed, unserved });
  const ofFiles = resolver?.program === 'systemd-resolved' ? null : resolver;
  const isFixed = options.dns && ofFiles?.unstartable !== undefined;
  const owned = { ownsDns: isOwn, ...(isFixed && { keepsDnsFiles: true as const }) };
  const kept = obstacle === null ? keepFile(resolver, own, refused?.failure) : null;
  if (kept !== null) {
    const isKept = ({ domain }: DomainReport) => kept.dns?.domains.includes(domain);
    const shown = report.map((each) => (isKept(each) ? each : notUsed(each, kept)));
    return { dns: kept.dns, ...owned, served, domains: shown };
  }
  if (refused === null) return { dns, ...owned, served, domains: report };
  // Without the daemon as a server, the settings may work.
  if (dns === null || !isSame(dns, refused)) return { dns, ...owned, served: null, domains: report };
  const reason = `with its DNS server, ${refused.lost.join(', ')} did not resolve on this host`;
  return {
    dns: null,
    ...owned,
    served: null,
    domains: report.map((each) => notUsed(each, { state: 'refused', reason })),
  };
}

const notServed = `the daemon does not serve names yet: ${serveRemedy}`;

interface Reported {
  readonly domains: readonly string[];
  readonly split: readonly DomainReport[];
  readonly obstacle: string | null;
  /** How this host can have the names of peers despite the obstacle; null for no other way. */
  readonly alternative: string | null;
  readonly isServing: boolean;
  /** True if the resolver sends all queries to the daemon, whether it serves names or not. */
  readonly isUsed: boolean;
  /** Why the daemon serves no names, if it serves none. */
  readonly unserved: string;
}

/** Adds the domain of the network's own names, which are served by the daemon alone. */
function reportAll({
  domains: [domain = ''],
  split,
  obstacle,
  alternative,
  isServing,
  isUsed,
  unserved,
}: Reported): DomainReport[] {
  const own = { domain, route: null, servers: [] };
  if (obstacle !== null) {
    const reason = alternative === null ? obstacle : `${obstacle}; ${alternative}`;
    return [{ ...own, state: 'refused', reason }, ...split];
  }
  if (isServing) return [...split];
  if (isUsed) return split.map((each) => notUsed(each, { state: 'waiting', reason: `its names fail: ${unserved}` }));
  const waiting = split.map((each) => (each.reason === unserved ? { ...each, state: 'waiting' as const } : each));
  return [{ ...own, state: 'waiting', reason: unserved }, ...waiting];
}

function serversOf({ servers }: RouteDns): DnsServer[] {
  return servers.map((address) => ({ address, port: dnsPort }));
}

function isSame({ servers, domains }: DomainServers, refused: DomainServers): boolean {
  return sameData({ servers, domains }, { servers: refused.servers, domains: refused.domains });
}

function notUsed(
  report: DomainReport,
  { state, reason }: { readonly state: DomainReport['state']; readonly reason: string },
): DomainReport {
  return report.state === 'used' ? { ...report, state, reason } : report;
}

/** The routes that no peer of this host receives packets for, with the reason. */
function findUntaken(reports: readonly RouteReport[]): ReadonlyMap<Prefix, string> {
  const taken = new Set(reports.filter(({ state }) => state === 'taken').map(({ prefix }) => prefix));
  return new Map(
    reports
      .filter(({ prefix, state }) => !taken.has(prefix) && state !== 'standby')
      .map((each): [Prefix, string] => [each.prefix, describe(each)]),
  );
}

function describe({ state, reason }: RouteReport): string {
  if (state === 'served' || state === 'withdrawn') return 'this host itself serves it';
  return reason ?? 'no connector serves it';
}
