import type { LinkDnsSettings } from '../host-state/actual.ts';
import type { NetworkMap, RouteDns } from '../map/model.ts';
import { peerDomain } from '../names/hosts-block.ts';
import {
  type DnsServer,
  type DomainReport,
  dnsPort,
  formatServer,
  type LinkDns,
  type SplitDnsInputs,
  splitDns,
} from '../names/split-dns.ts';
import { findReverseZones, namesPort } from '../names/zone.ts';
import type { Prefix } from '../net/cidr.ts';
import type { RouteConstraints } from '../routing/guard.ts';
import type { KeptOutside } from '../routing/kept-outside.ts';
import type { RouteReport } from '../routing/route-report.ts';
import { sameData } from '../util/same-data.ts';
import type { Desired, DesiredInputs, NameConstraints } from './desired.ts';

interface ChosenRoutes {
  readonly map: NetworkMap;
  readonly reports: readonly RouteReport[];
  readonly keptOutside: readonly KeptOutside[];
  readonly constraints: RouteConstraints;
}

/** Chooses the DNS settings of the interface: names of peers, and the domains behind routes. */
export function chooseDns(
  { options, names, label, self }: Pick<DesiredInputs, 'options' | 'names' | 'label' | 'self'>,
  { map, reports, keptOutside, constraints: { underlay, newerLinks } }: ChosenRoutes,
): Pick<Desired, 'dns' | 'ownsDns' | 'served' | 'domains'> {
  const { entries, suffixes, needed, networks, resolver, refused } = names;
  const own = { address: self.address, port: namesPort };
  const isOwn = names.isOwn || isRecognized(resolver?.own ?? null, [own, ...entries.flatMap(serversOf)]);
  // A network that joined later yields, and so does the search domain that a DHCP server gave.
  const uplinks = new Set([...underlay.uplinks, ...(underlay.uplinks6 ?? [])]);
  const subnets = [...underlay.connected, ...underlay.routed].map(({ prefix }) => prefix);
  const domains = [`${label}.${peerDomain}`, ...findReverseZones(map.cidr, subnets)];
  const unusable = findObstacle(options, { resolver, isOwn });
  const inputs: SplitDnsInputs = {
    own: resolver?.isServing ? { server: own, domains } : null,
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
    unusable,
  };
  const { dns, forwarded, report: split } = splitDns(inputs);
  const report = unusable === null && !resolver?.isServing ? [unserved(domains), ...split] : split;
  if (refused === null) {
    const served = unusable === null ? { label, forwarded, afterwards: splitDns({ ...inputs, own: null }).dns } : null;
    return { dns, ownsDns: isOwn, served, domains: report };
  }
  // Without the daemon as a server, the settings may work.
  if (dns === null || !isSame(dns, refused)) return { dns, ownsDns: isOwn, served: null, domains: report };
  return { dns: null, ownsDns: isOwn, served: null, domains: report.map((each) => refuse(each, refused)) };
}

function unserved([domain = '']: readonly string[]): DomainReport {
  const reason = 'the daemon of this host does not serve it: start it with systemctl start cpn, or see its log';
  return { domain, route: null, servers: [], state: 'refused', reason };
}

/**
 * True if settings can only be ours: servers of the network, for routing domains alone. An older
 * version writes a state without `ownsDns`.
 */
function isRecognized(found: LinkDnsSettings | null, servers: readonly DnsServer[]): boolean {
  if (found === null || found.servers.length === 0 || found.isDefaultRoute) return false;
  const known = servers.map(formatServer);
  return found.servers.every((each) => known.includes(each)) && found.domains.every((each) => each.startsWith('~'));
}

function serversOf({ servers }: RouteDns): DnsServer[] {
  return servers.map((address) => ({ address, port: dnsPort }));
}

function isSame({ servers, domains }: LinkDns, refused: LinkDns): boolean {
  return sameData({ servers, domains }, { servers: refused.servers, domains: refused.domains });
}

function refuse(report: DomainReport, { lost }: NonNullable<NameConstraints['refused']>): DomainReport {
  const reason = `with its DNS server, ${lost.join(', ')} did not resolve on this host`;
  return report.state === 'used' ? { ...report, state: 'refused', reason } : report;
}

/** Why this host can set no domain; null if it can. */
function findObstacle(
  { dns }: DesiredInputs['options'],
  { resolver, isOwn }: Pick<NameConstraints, 'resolver' | 'isOwn'>,
): SplitDnsInputs['unusable'] {
  if (!dns) return 'this host takes none (--no-dns)';
  if (!resolver) return 'it needs systemd-resolved, which does not run on this host, or does not show its settings';
  return resolver.own !== null && !isOwn ? 'another program has set DNS servers on the interface' : null;
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
