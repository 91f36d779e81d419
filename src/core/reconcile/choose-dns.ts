import type { NetworkMap } from '../map/model.ts';
import { type LinkDns, type SplitDnsInputs, splitDns } from '../names/split-dns.ts';
import type { Prefix } from '../net/cidr.ts';
import type { RouteConstraints } from '../routing/guard.ts';
import type { KeptOutside } from '../routing/kept-outside.ts';
import type { RouteReport } from '../routing/route-report.ts';
import type { Desired, DesiredInputs } from './desired.ts';

interface ChosenRoutes {
  readonly map: NetworkMap;
  readonly reports: readonly RouteReport[];
  readonly keptOutside: readonly KeptOutside[];
  readonly constraints: RouteConstraints;
}

const noNames: NonNullable<DesiredInputs['names']> = {
  ...{ entries: [], needed: [], resolver: undefined, isOwn: false, refused: null },
};

/** Chooses the DNS settings of the interface from the domains behind the routes of the map. */
export function chooseDns(
  { options, names }: Pick<DesiredInputs, 'options' | 'names'>,
  { map, reports, keptOutside, constraints: { underlay, newerLinks } }: ChosenRoutes,
): Pick<Desired, 'dns' | 'ownsDns' | 'domains'> {
  const { entries, needed, resolver, isOwn, refused } = names ?? noNames;
  const others = resolver?.others ?? [];
  const { dns, report } = splitDns({
    entries,
    untaken: findUntaken(reports),
    outside: keptOutside.map(({ address }) => address),
    names: needed,
    // A network that joined later yields.
    others: others.filter(({ link }) => link === null || !newerLinks.includes(link)),
    local: [map.cidr, ...[...underlay.connected, ...underlay.routed].map(({ prefix }) => prefix)],
    unusable: findObstacle(options, resolver, isOwn),
  });
  if (dns === null || refused === null || !isSame(dns, refused)) return { dns, ownsDns: isOwn, domains: report };
  const reason = `with its DNS server, ${refused.lost.join(', ')} did not resolve on this host`;
  const domains = report.map((each) => (each.state === 'used' ? { ...each, state: 'refused' as const, reason } : each));
  return { dns: null, ownsDns: isOwn, domains };
}

function isSame(one: LinkDns, other: LinkDns): boolean {
  return one.servers.join() === other.servers.join() && one.domains.join() === other.domains.join();
}

/** Why this host can set no domain; null if it can. */
function findObstacle(
  { dns }: DesiredInputs['options'],
  resolver: NonNullable<DesiredInputs['names']>['resolver'],
  isOwn: boolean,
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
