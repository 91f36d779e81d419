import { compareSecret } from '../../core/health/compare-secrets.ts';
import { nameLimiting } from '../../core/health/path-mtu.ts';
import { findRelays, peerStateOf } from '../../core/health/peer-health.ts';
import { findNeverAnswered, findUnanswered } from '../../core/health/unanswered.ts';
import type { Peer } from '../../core/map/model.ts';
import { ownKeys } from '../../core/map/own-peer.ts';
import { resolveLabels } from '../../core/names/hosts-label.ts';
import { addressesOf } from '../../core/names/resolved-names.ts';
import { type DnsFailure, type DomainReport, describeFailure } from '../../core/names/split-dns.ts';
import { namesPort } from '../../core/names/zone.ts';
import { hostPrefix } from '../../core/net/cidr.ts';
import { formatEndpoint } from '../../core/net/endpoint.ts';
import { proxyOf } from '../../core/net/proxy.ts';
import { recordOf } from '../../core/paths/path-record.ts';
import { problem, selectProblems, stateOf, toWarnings } from '../../core/problems/problem.ts';
import {
  type BypassRoute,
  describeBypassRoute,
  findBypassRoutes,
  isRoutedInto,
  withoutSubnets,
} from '../../core/routing/bypass-route.ts';
import { noOutside, reportOutside } from '../../core/routing/outside-report.ts';
import { findForeignRoutes } from '../../core/routing/own-routes.ts';
import { type RouteReport, remedyOfRefused } from '../../core/routing/route-report.ts';
import { findHiddenPeers } from '../../core/routing/topology/topology.ts';
import { findSoleConnectors, isStranded } from '../../core/routing/topology/via-connectors.ts';
import type { Notes } from '../../store/store.ts';
import { findServing } from '../lan/serving.ts';
import type { Evaluation } from '../reconcile/evaluate-network.ts';
import { findSecretMismatches, pinMismatchFinder, viewSecrets } from './find-mismatches.ts';
import {
  findConfigRemarks,
  findForeignRouteProblems,
  findHostsProblem,
  findLanProblems,
  findLeftFiles,
  findPinProblems,
  findRefusedDomains,
  findSkippedPeers,
  findTroubles,
  findUnusedEndpoints,
  findUnusedMaps,
} from './find-problems.ts';
import { findServiceProblems, findStateProblems, type HostFacts } from './find-state-problems.ts';
import type { NetworkStatus, PeerStatus, RouteStatus } from './network-status.ts';

const notOnHost = 'not on the host';
const noAnswer = 'does not answer';

type EvaluatedStatus = Pick<
  NetworkStatus,
  | 'state'
  | 'problems'
  | 'listenPort'
  | 'mtu'
  | 'pathMtu'
  | 'relay'
  | 'peers'
  | 'routes'
  | 'domains'
  | 'drift'
  | 'foreignRoutes'
  | 'outside'
  | 'warnings'
>;

/**
 * Describes a network by its evaluation and by the daemon's notes.
 *
 * @param now seconds since the epoch
 */
export function describeEvaluation(
  evaluation: Evaluation,
  notes: Pick<
    Notes,
    'sync' | 'silent' | 'troubles' | 'dead' | 'ways' | 'unloaded' | 'probed' | 'alternating' | 'paths'
  > &
    Partial<Pick<Notes, 'dnsFailures'>>,
  now: number,
  host: HostFacts = {},
): EvaluatedStatus {
  const { state, desired, actual, changes } = evaluation;
  const { pathMtu } = desired;
  const { map } = state.membership;
  // A network that was taken down has no drift.
  const drift = state.enabled ? changes : [];
  const peers = describePeers(evaluation, notes, now);
  const unanswered = findUnanswered(map, desired.config.peers, actual.device?.peers ?? [], notes.silent);
  const silentPeers = peers.filter(({ state, publicKey }) => state === 'stale' || unanswered.has(publicKey));
  const taken = desired.report.filter((route) => route.state === 'taken').map((route) => route.prefix);
  const bypasses = findBypassRoutes([map.cidr, ...taken], actual, actual.underlay);
  const remoteBypasses = findBypassRoutes([map.cidr, ...taken], actual, withoutSubnets(actual.underlay));
  const silence = {
    neverAnswered: findNeverAnswered(map, actual, state.failed),
    silent: new Set(silentPeers.map(({ name }) => name)),
  };
  const standbys = new Map(findServing(evaluation, notes).map(({ route, standby }) => [route, standby]));
  const routes = desired.report.map((route) => ({
    ...(route.state === 'served'
      ? describeServed(route, standbys.get(route.prefix) ?? null)
      : describeRoute(route, actual, silence, bypasses.get(route.prefix))),
    remedy: route.state === 'refused' ? remedyOfRefused(route, state.interface) : null,
  }));
  const isProxied = proxyOf(state.service) !== null;
  const outside = state.enabled ? reportOutside(state.interface, desired, actual.underlay, isProxied) : noOutside;
  const { interface: link } = state;
  const ofRange = { subnet: bypasses.get(map.cidr), remote: remoteBypasses.get(map.cidr) };
  const hidden = findHiddenPeers(map, state.membership.peer.address, actual.underlay);
  const isHidden = hidden.some(({ peer }) => hostPrefix(peer.address) === ofRange.subnet?.prefix);
  const { dnsFailures = {} } = notes;
  const domains = describeDomains(evaluation, dnsFailures);
  const problems = selectProblems([
    ...findStateProblems(evaluation, notes, now, host),
    ...findPinProblems(state),
    ...findSecretMismatches(state, actual).map((each) => problem('secret-mismatch', { interface: link, ...each })),
    ...hidden.map(({ peer: { name: peer, address }, link: other }) =>
      problem('peer-hidden', { interface: link, peer, address, other }),
    ),
    ...silentPeers.map(({ name: peer, address }) => problem('peer-silent', { interface: link, peer, address })),
    ...desired.relayedPeers.map(({ peer, via }) =>
      problem('peer-relayed', { interface: link, peer: peer.name, via: via.name }),
    ),
    ...findSoleConnectors(map, new Set(silentPeers.map(({ id }) => id))).map((each) =>
      problem('connector-alone', { interface: link, ...each }),
    ),
    ...findUnusedEndpoints(evaluation),
    ...findSkippedPeers(state),
    ...findConfigRemarks(state),
    // A route that is only missing on the host is part of the drift.
    ...routes
      .filter((route) => route.state === 'missing' && (drift.length === 0 || route.reason !== notOnHost))
      .map(({ prefix: route, reason }) => problem('route-missing', { interface: link, route, reason })),
    ...[...remoteBypasses].map(([route, { prefix: part, link: by }]) =>
      problem('route-bypassed', { interface: link, route, part, by, is_range: route === map.cidr }),
    ),
    ...findForeignRouteProblems(evaluation),
    ...outside.entries.flatMap(({ prefix, problem: why }) =>
      why === null ? [] : problem('tunnel-bypassed', { interface: link, prefix, problem: why }),
    ),
    ...(isHidden || ofRange.remote !== undefined || ofRange.subnet === undefined
      ? []
      : [problem('subnet-inside', { interface: link, subnet: ofRange.subnet.prefix, on: ofRange.subnet.link })]),
    ...findLanProblems(state, notes),
    ...findUnusedMaps(state),
    ...findServiceProblems(state, notes),
    ...desired.keptSessions.map(({ address: from, local: to }) =>
      problem('session-kept', { interface: link, from, to, address: state.membership.peer.address }),
    ),
    ...(state.enabled ? [...findHostsProblem(evaluation), ...findRefusedDomains(evaluation)] : []),
    ...findLeftFiles(evaluation),
    ...domains.flatMap(({ domain, servers, state: is }) => {
      const failure = is === 'silent' || is === 'failing' ? failureOf(domain, dnsFailures) : undefined;
      if (failure === undefined) return [];
      const facts = { interface: link, domain, servers };
      return [
        failure === 'silent' ? problem('domain-silent', facts) : problem('domain-failing', { ...facts, failure }),
      ];
    }),
    ...(state.enabled && actual.dns?.taken !== undefined
      ? [problem('names-port-taken', { interface: link, address: actual.dns.taken, port: namesPort })]
      : []),
    ...findTroubles(state, notes),
  ]);
  return {
    state: stateOf(problems),
    problems,
    listenPort: actual.device?.listenPort ?? null,
    mtu: actual.link?.mtu ?? null,
    pathMtu: pathMtu && { peer: nameLimiting(pathMtu, map.peers), measuredAt: pathMtu.measuredAt },
    relay: desired.relay && {
      peer: desired.relay.name,
      named: map.peers.find(({ id }) => id === map.relay)?.name ?? null,
    },
    peers,
    routes,
    domains,
    drift,
    foreignRoutes: findForeignRoutes(desired, actual),
    outside,
    warnings: toWarnings(problems),
  };
}

function describePeers(
  { state, desired, actual }: Evaluation,
  { silent, paths }: Pick<Notes, 'silent' | 'paths'>,
  now: number,
): PeerStatus[] {
  const wanted = new Map(desired.config.peers.map((peer) => [peer.publicKey, peer]));
  const present = new Map(actual.device?.peers.map((peer) => [peer.publicKey, peer]));
  const secrets = viewSecrets(state, actual);
  const own = ownKeys(state);
  const findMismatch = pinMismatchFinder(state);
  const failed = new Set(state.failed.filter(({ back }) => !back).map(({ peer }) => peer));
  const { map } = state.membership;
  const relays = findRelays(map, desired.config.peers);
  const names = new Map(map.peers.map(({ publicKey, name }) => [publicKey, name]));
  const labels = resolveLabels(map.peers, state.labels);
  return map.peers
    .filter((peer) => !own.includes(peer.publicKey))
    .map((peer) => {
      // A peer under trial is reached through the relay until its path is in use.
      const isTried = desired.triable.has(peer.publicKey) && !wanted.has(peer.publicKey);
      const observed = isTried ? undefined : present.get(peer.publicKey);
      const relay = relays.get(peer.publicKey);
      const direct =
        observed === undefined
          ? 'never'
          : failed.has(peer.id)
            ? 'stale'
            : peerStateOf(observed, now, silent[peer.publicKey]);
      const isRelayed = relay !== undefined && present.has(relay) && !isStranded(peer, map);
      const path = isRelayed ? 'relayed' : wanted.has(peer.publicKey) ? 'direct' : null;
      // A record may be of the time before the peer had an endpoint.
      const switched = peer.endpoint === null ? (recordOf(paths, peer.id)?.switched ?? null) : null;
      const endpointRefused = desired.lostEndpoints.get(peer.id) ?? null;
      const endpoint = observed?.endpoint ?? (endpointRefused === null ? peer.endpoint : null);
      return {
        id: peer.id,
        name: peer.name,
        label: labels.get(peer.id)?.label ?? '',
        labelTaken: labels.get(peer.id)?.taken ?? null,
        type: peer.type,
        publicKey: peer.publicKey,
        address: peer.address,
        endpoint: endpoint && formatEndpoint(endpoint),
        endpointRefused,
        endpointChoice: findChoice(peer, desired),
        allowedIps: wanted.get(peer.publicKey)?.allowedIps ?? [],
        state: isRelayed && direct === 'never' ? 'relayed' : direct,
        path,
        via: isRelayed ? (names.get(relay) ?? null) : null,
        since: switched !== null && switched.to === path ? switched.at : null,
        latestHandshake: observed?.latestHandshake ?? null,
        rxBytes: observed?.rxBytes ?? 0,
        txBytes: observed?.txBytes ?? 0,
        ...findMismatch(peer.id),
        secret: compareSecret(peer, secrets),
      };
    });
}

function findChoice({ endpoint }: Peer, { resolved }: Evaluation['desired']): PeerStatus['endpointChoice'] {
  const addresses = endpoint === null ? [] : addressesOf(endpoint.host, resolved);
  return endpoint === null || addresses.length < 2 ? null : { name: endpoint.host, addresses };
}

/** The daemon forwards all queries for a domain, and so has the fact. */
function describeDomains({ desired, actual }: Evaluation, failures: DnsFailures): readonly DomainReport[] {
  if (!actual.dns?.isServing) return desired.domains;
  return desired.domains.map((each): DomainReport => {
    const failure = each.state === 'used' && each.route !== null ? failureOf(each.domain, failures) : undefined;
    if (failure === undefined) return each;
    const owned = each.servers.length === 1 ? 'its DNS server' : 'its DNS servers';
    const reason = `${owned} ${describeFailure(failure, each.servers)}`;
    return { ...each, state: failure === 'silent' ? failure : 'failing', reason };
  });
}

type DnsFailures = Notes['dnsFailures'];

/** Safe for domains such as `constructor`. */
function failureOf(domain: string, failures: DnsFailures): DnsFailure | undefined {
  return Object.hasOwn(failures, domain) ? failures[domain] : undefined;
}

/** @param standby why this host is not in service for the route; null if it is */
function describeServed({ prefix, local }: RouteReport, standby: string | null): Omit<RouteStatus, 'remedy'> {
  const served = `served by this host${local === undefined ? '' : `, as ${local}`}`;
  const state = standby === null ? 'active' : 'standby';
  return {
    prefix,
    via: null,
    state,
    reason: standby === null ? served : `${served}; ${standby}`,
    ...(local && { local }),
  };
}

function describeRoute(
  { prefix, via, state, reason, local }: RouteReport,
  actual: Evaluation['actual'],
  { neverAnswered, silent }: Readonly<Record<'neverAnswered' | 'silent', ReadonlySet<string>>>,
  bypass: BypassRoute | undefined,
): Omit<RouteStatus, 'remedy'> {
  if (state === 'withdrawn') {
    const as = local === undefined ? '' : `, as ${local}`;
    return { prefix, via: null, state: 'standby', reason: `out of service at this host${as}`, ...(local && { local }) };
  }
  if (state === 'standby' && via !== null && neverAnswered.has(via))
    return { prefix, via, state: 'never', reason: reason ?? 'has not answered this host yet' };
  if (state === 'standby' || state === 'refused' || state === 'missing') return { prefix, via, state, reason };
  if (actual.unread !== undefined)
    return { prefix, via, state: 'missing', reason: 'the routes of this host cannot be read' };
  if (!isRoutedInto(prefix, actual)) return { prefix, via, state: 'missing', reason: notOnHost };
  const isSilent = via !== null && silent.has(via);
  const reasons = new Set([
    ...(bypass ? [describeBypassRoute(bypass)] : []),
    ...(isSilent ? [noAnswer] : []),
    ...(reason === null ? [] : [reason]),
  ]);
  return { prefix, via, state: 'active', reason: reasons.size === 0 ? null : [...reasons].join('; ') };
}
