import { HostsFileNotUpdated, HostUnread, RulesNotLoaded } from '../../core/errors/index.ts';
import { describeKeptSession } from '../../core/forward/kept-sessions.ts';
import { findOpenAddress } from '../../core/forward/open-address.ts';
import { isLoaded } from '../../core/forward/own-table.ts';
import { compareSecret, describeSecretMismatch } from '../../core/health/compare-secrets.ts';
import { describeOwnClone } from '../../core/health/describe-clone.ts';
import { describeDialled } from '../../core/health/describe-dialled.ts';
import { findRelays } from '../../core/health/find-relays.ts';
import { nameLimiting } from '../../core/health/path-mtu.ts';
import { peerStateOf } from '../../core/health/peer-health.ts';
import { findNeverAnswered } from '../../core/health/standby.ts';
import { findUnanswered } from '../../core/health/unanswered.ts';
import { findExpiryWarning } from '../../core/map/expiry.ts';
import { describeMapAge } from '../../core/map/map-age.ts';
import type { Peer } from '../../core/map/model.ts';
import { describeUnlisted, findOwnPeer, ownKeys } from '../../core/map/own-peer.ts';
import { describeAllSkipped } from '../../core/map/skipped-peers.ts';
import { addressesOf } from '../../core/names/resolved-names.ts';
import { hostPrefix } from '../../core/net/cidr.ts';
import { formatEndpoint } from '../../core/net/endpoint.ts';
import { proxyOf } from '../../core/net/proxy.ts';
import { findPinMismatches } from '../../core/pins/pin-mismatch.ts';
import { findProblems } from '../../core/problems/find-problems.ts';
import { findPortMismatch } from '../../core/problems/port-mismatch.ts';
import { stateOf } from '../../core/problems/problem.ts';
import { explainHosts } from '../../core/reconcile/plan-hosts.ts';
import {
  type BypassRoute,
  describeBypassRoute,
  findBypassRoutes,
  isRoutedInto,
  withoutSubnets,
} from '../../core/routing/bypass-route.ts';
import { findHiddenPeers, type HiddenPeer } from '../../core/routing/hidden-peers.ts';
import { noOutside, reportOutside } from '../../core/routing/outside-report.ts';
import { findForeignRoutes } from '../../core/routing/own-routes.ts';
import { type RouteReport, remedyOfRefused } from '../../core/routing/route-report.ts';
import { isStranded, listDialling } from '../../core/routing/via-connectors.ts';
import type { Joined } from '../../store/state/state.ts';
import type { Notes } from '../../store/store.ts';
import { describeLanRoutes, findUnreachableLans } from '../lan/lan-routes.ts';
import { describePinMismatches } from '../pins.ts';
import type { Evaluation } from '../reconcile/evaluate-network.ts';
import { findPortConflict, type PortConflict } from '../reconcile/port-conflict.ts';
import type { HostTools } from '../tools.ts';
import { findCloneWarnings } from './describe-clones.ts';
import { describeLan } from './describe-lan.ts';
import { pinMismatchFinder } from './describe-pin-mismatches.ts';
import { describeProvidedConfig } from './describe-provided-config.ts';
import { describeDeletion, describeRotation } from './describe-state.ts';
import { findSecretMismatches, viewSecrets } from './find-secret-mismatches.ts';
import type { NetworkStatus, PeerStatus, RouteStatus } from './network-status.ts';

const mapAgeRemedy = 'check with "cpn doctor" why the control plane does not answer, and that "cpn run" runs';

const notOnHost = 'not on the host';
const noAnswer = 'does not answer';

/** What an evaluation tells of a network's state. */
type EvaluatedStatus = Pick<
  NetworkStatus,
  | 'state'
  | 'problems'
  | 'listenPort'
  | 'mtu'
  | 'pathMtu'
  | 'peers'
  | 'routes'
  | 'drift'
  | 'foreignRoutes'
  | 'outside'
  | 'warnings'
>;

/** Facts of the host that an evaluation lacks. */
interface HostFacts {
  readonly portConflict?: PortConflict | null;
  readonly configPath?: string;
}

/** Reads them. */
export async function readHostFacts(tools: HostTools, evaluation: Evaluation): Promise<HostFacts> {
  const configPath = tools.store.configPath(evaluation.state.interface);
  return { portConflict: await findPortConflict(tools, evaluation), configPath };
}

/**
 * Tells how a network is from an evaluation of it and from what the daemon noted.
 *
 * @param now seconds since the epoch
 */
export function describeEvaluation(
  evaluation: Evaluation,
  notes: Pick<Notes, 'sync' | 'silent' | 'troubles' | 'dead' | 'ways' | 'unloaded' | 'probed' | 'alternating'>,
  now: number,
  { portConflict = null, configPath = `${evaluation.state.interface}.conf` }: HostFacts = {},
): EvaluatedStatus {
  const { state, listed, desired, actual, changes } = evaluation;
  const { pathMtu } = desired;
  const { map } = state.membership;
  // A network that was taken down is as it should be.
  const drift = state.enabled ? changes : [];
  const peers = describePeers(evaluation, notes.silent, now);
  const unanswered = findUnanswered(map, desired.config.peers, actual.device?.peers ?? [], notes.silent);
  const silentPeers = peers.filter(({ state, publicKey }) => state === 'stale' || unanswered.has(publicKey));
  const taken = desired.report.filter((route) => route.state === 'taken').map((route) => route.prefix);
  const bypasses = findBypassRoutes([map.cidr, ...taken], actual, actual.underlay);
  const remoteBypasses = findBypassRoutes([map.cidr, ...taken], actual, withoutSubnets(actual.underlay));
  const silence = {
    neverAnswered: findNeverAnswered(map, actual, state.failed),
    silent: new Set(silentPeers.map(({ name }) => name)),
  };
  const routes = desired.report.map((route) => ({
    ...describeRoute(route, actual, silence, bypasses.get(route.prefix)),
    remedy: route.state === 'refused' ? remedyOfRefused(route, state.interface) : null,
  }));
  const foreignRoutes = findForeignRoutes(desired, actual);
  const isProxied = proxyOf(state.service) !== null;
  const outside = state.enabled ? reportOutside(state.interface, desired, actual.underlay, isProxied) : noOutside;
  const withoutWay = describeLanRoutes(state, notes.ways);
  const age = desired.isConnector ? describeMapAge(state, evaluation.serviceTime) : null;
  const names = explainHosts(desired, actual);
  const pending = describeRotation(state);
  const ending = findExpiryWarning(state, new Date(now * 1000));
  const secretMismatches = findSecretMismatches(state, actual);
  const deleted = describeDeletion(state);
  const rangeBypass = bypasses.get(map.cidr);
  const hidden = findHiddenPeers(map, state.membership.peer.address, actual.underlay);
  const isHidden = hidden.some(({ peer }) => hostPrefix(peer.address) === rangeBypass?.prefix);
  const problems = findProblems({
    ...{ link: state.interface, enabled: state.enabled, hasInterface: actual.link !== null, unread: actual.unread },
    deletedAt: state.deletion?.at ?? null,
    leftConfig: state.deletion !== undefined && evaluation.savedText !== null ? configPath : null,
    portConflict,
    unlisted: listed ? null : describeUnlisted(map, state),
    drift: drift.length,
    portMismatch: findPortMismatch(
      findOwnPeer(map, state)?.endpoint ?? null,
      actual.device?.listenPort ?? null,
      actual.underlay.addresses,
    ),
    clone: notes.sync.clonedSince === undefined ? null : describeOwnClone(state.interface, notes.sync.clonedSince),
    ending,
    pinMismatches: findPinMismatches(map, state.pins),
    secretMismatches,
    hiddenPeers: hidden,
    silentPeers,
    // One that is only not on the host is a part of the drift.
    missingRoutes: routes.filter(
      (route) => route.state === 'missing' && (drift.length === 0 || route.reason !== notOnHost),
    ),
    bypassed: remoteBypasses,
    subnetInside: isHidden || remoteBypasses.has(map.cidr) ? null : (rangeBypass ?? null),
    foreignRoutes,
    outside,
    silentLans: notes.dead,
    unreachableLans: findUnreachableLans(notes.ways),
    mapAge: age,
    refused: notes.sync.refused,
    keptFor: state.options.rotateEvery === null ? [] : listDialling(map, state.membership.peer).map(({ name }) => name),
  });
  return {
    state: stateOf(problems),
    problems,
    listenPort: actual.device?.listenPort ?? null,
    mtu: actual.link?.mtu ?? null,
    pathMtu: pathMtu && { peer: nameLimiting(pathMtu, map.peers), measuredAt: pathMtu.measuredAt },
    peers,
    routes,
    drift,
    foreignRoutes,
    outside,
    warnings: [
      ...(actual.unread === undefined ? [] : [new HostUnread(state.interface, actual.unread).message]),
      ...(listed ? [] : [describeMissing(state)]),
      ...(rangeBypass ? [`${map.cidr}: ${describeBypassRoute(rangeBypass)}`] : []),
      ...hidden.map(describeHidden),
      ...describeProvidedConfig(state),
      ...describeAllSkipped(map.skipped),
      ...describePinMismatches(state),
      ...(ending === null ? [] : [`${ending.found}; ${ending.remedy}`]),
      ...findCloneWarnings(state, notes).map(({ found, remedy }) => `${found}; ${remedy}`),
      ...(age === null ? [] : [`${age.found}; ${mapAgeRemedy}`]),
      ...(notes.sync.repliesEarly ? [earlyReplies] : []),
      ...(notes.sync.refusesDeltas ? [refusedDeltas] : []),
      ...(state.refused === null ? [] : [describeRefused(state)]),
      ...(deleted === null ? [] : [deleted]),
      ...problems.filter(({ code }) => code === 'config-left').map(({ text, remedy }) => `${text}; ${remedy}`),
      ...(state.enabled || deleted !== null ? [] : [`taken down; "cpn up ${state.interface}" brings it up`]),
      ...(state.drained
        ? [`out of service since "cpn drain"; "cpn drain ${state.interface} --undo" puts it back`]
        : []),
      ...(pending === null ? [] : [pending]),
      ...secretMismatches.map(describeSecretMismatch),
      ...desired.relayedPeers.map(
        ({ peer, via }) => `${peer.name} does not answer here; its packets go through ${via.name}`,
      ),
      ...describeDialled(map, new Set(silentPeers.map(({ id }) => id))),
      ...describeUnloaded(evaluation, notes),
      ...describeOpenAddress(evaluation),
      ...desired.keptSessions.map((each) => describeKeptSession(each, state.membership.peer.address)),
      ...describeLan(state, notes),
      ...withoutWay,
      ...(names === null || !state.enabled ? [] : [new HostsFileNotUpdated(state.interface, names).message]),
      ...notes.troubles,
    ],
  };
}

const earlyReplies =
  'changes arrive late: the control plane, or a proxy in front of it, answers long polls immediately, without a change; let the proxy cache nothing, and pass If-None-Match, Prefer, ETag and Preference-Applied unchanged';
const refusedDeltas =
  'a proxy in front of the control plane refuses the status 226: this host reads the whole map for each change, and does not confirm removals; let the proxy pass A-IM and the status 226';

function describePeers({ state, desired, actual }: Evaluation, silent: Notes['silent'], now: number): PeerStatus[] {
  const wanted = new Map(desired.config.peers.map((peer) => [peer.publicKey, peer]));
  const present = new Map(actual.device?.peers.map((peer) => [peer.publicKey, peer]));
  const secrets = viewSecrets(state, actual);
  const own = ownKeys(state);
  const findMismatch = pinMismatchFinder(state);
  const failed = new Set(state.failed.filter(({ back }) => !back).map(({ peer }) => peer));
  const { map } = state.membership;
  const relays = findRelays(map, desired.config.peers);
  const names = new Map(map.peers.map(({ publicKey, name }) => [publicKey, name]));
  return map.peers
    .filter((peer) => !own.includes(peer.publicKey))
    .map((peer) => {
      const observed = present.get(peer.publicKey);
      const relay = relays.get(peer.publicKey);
      const direct =
        observed === undefined
          ? 'never'
          : failed.has(peer.id)
            ? 'stale'
            : peerStateOf(observed, now, silent[peer.publicKey]);
      const isRelayed = direct === 'never' && relay !== undefined && present.has(relay) && !isStranded(peer, map);
      const endpointRefused = desired.lostEndpoints.get(peer.id) ?? null;
      const endpoint = observed?.endpoint ?? (endpointRefused === null ? peer.endpoint : null);
      return {
        id: peer.id,
        name: peer.name,
        label: peer.label ?? null,
        type: peer.type,
        publicKey: peer.publicKey,
        address: peer.address,
        endpoint: endpoint && formatEndpoint(endpoint),
        endpointRefused,
        endpointChoice: findChoice(peer, desired),
        allowedIps: wanted.get(peer.publicKey)?.allowedIps ?? [],
        state: isRelayed ? 'relayed' : direct,
        via: isRelayed ? (names.get(relay) ?? null) : null,
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

function describeRoute(
  { prefix, via, state, reason }: RouteReport,
  actual: Evaluation['actual'],
  { neverAnswered, silent }: Readonly<Record<'neverAnswered' | 'silent', ReadonlySet<string>>>,
  bypass: BypassRoute | undefined,
): Omit<RouteStatus, 'remedy'> {
  if (state === 'served') return { prefix, via: null, state: 'active', reason: 'served by this host' };
  if (state === 'withdrawn') return { prefix, via: null, state: 'standby', reason: 'out of service at this host' };
  if (state === 'standby' && via !== null && neverAnswered.has(via))
    return { prefix, via, state: 'never', reason: reason ?? 'has not answered this host yet' };
  if (state !== 'taken') return { prefix, via, state, reason };
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

function describeUnloaded({ state, desired, actual }: Evaluation, { unloaded }: Pick<Notes, 'unloaded'>): string[] {
  const { link, firewall, isConnector } = desired;
  if (!state.enabled || unloaded === null || firewall === null || isLoaded(firewall, actual)) return [];
  return [new RulesNotLoaded(link, unloaded, isConnector).message];
}

function describeOpenAddress({ state, desired, actual }: Evaluation): string[] {
  const open =
    actual.link === null || !state.enabled ? null : findOpenAddress(state.membership.peer.address, desired, actual);
  return open === null ? [] : [`${open.found}; ${open.remedy}`];
}

function describeHidden({ peer, link }: HiddenPeer): string {
  return `${peer.name} is unreachable: this host has its address ${peer.address} itself, on ${link}; leave one of the two networks, or join that of ${link} again for another address`;
}

function describeRefused({ refused, membership: { map } }: Joined): string {
  return `network ${map.name} was rolled back: with its newest map (${refused}) no peer and no control plane that answered before answered again; the next attempt follows when the network changes`;
}

function describeMissing({ membership, service, interface: link }: Joined): string {
  const { map } = membership;
  const { found, remedy } = describeUnlisted(map, { membership });
  return `${service.url} ${found} in network ${map.name}; "cpn leave ${link}" removes the tunnel, ${remedy}`;
}
