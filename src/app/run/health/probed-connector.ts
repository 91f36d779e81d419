import {
  inexact,
  isLasting,
  isNew,
  isUncertain,
  type Liveness,
  needsHandshake,
  renewAfter,
  resetSilence,
  unknownLiveness,
} from '../../../core/health/liveness.ts';
import { everyOther, everyRound } from '../../../core/health/own-liveness.ts';
import { isFresh } from '../../../core/health/peer-health.ts';
import { hasPathTo } from '../../../core/host-state/underlay.ts';
import type { Peer, PeerFailure } from '../../../core/map/model.ts';
import { findOwnPeer } from '../../../core/map/own-peer.ts';
import { covers } from '../../../core/net/cidr.ts';
import { judgeRoutes } from '../../lan/serving.ts';
import type { Evaluation } from '../../reconcile/evaluate-network.ts';

/** Seconds between probes of the named relay while it is dead. */
export const everyExpected = 1;

export interface ProbedConnector {
  peer: Peer;
  readonly inService: boolean;
  /** True if it serves a route that this host serves too. */
  isSharing: boolean;
  /** False if nothing depends on its liveness, because no other connector can take over. */
  readonly isProbed: boolean;
  /** True if this host has no route to its endpoint. Its silence then proves nothing. */
  isCutOff: boolean;
  /**
   * Its number among the silent connectors; the highest number has the latest sign of life. Null
   * while it is not silent, and if it never answered.
   */
  heardOrder: number | null;
  /** True if another connector responds. */
  hasOther: boolean;
  /** True if the map names it as the relay, and this host needs one. */
  isNamedRelay: boolean;
  /** True if it is in service only because the map names it: it carries no route. */
  isOnlyRelay: boolean;
  liveness: Liveness;
  /** Seconds between two probes. */
  every: number;
  /** Seconds since the last probe; infinite before the first. */
  probed: number;
  /** Its round-trip time in milliseconds, smoothed as in TCP; null before the first answer. */
  rtt: number | null;
  /** Bytes received when the connector first failed to answer; null while it answers. */
  rxBytes: number | null;
  hasSession: boolean;
  /** Seconds since a probe started a handshake; null while another one is being forced. */
  begun: number | null;
}

/**
 * Returns the connectors of an evaluation. Unchanged ones keep their liveness.
 *
 * @param now seconds since the epoch
 */
export function updateConnectors(
  before: readonly ProbedConnector[],
  evaluation: Evaluation | null,
  now: number,
): ProbedConnector[] {
  const known = new Map(before.map((each) => [each.peer.publicKey, each]));
  const sessions = new Map(evaluation?.actual.device?.peers.map((peer) => [peer.publicKey, peer.latestHandshake]));
  return findConnectors(evaluation).map((connector) => {
    const { peer, inService, isSharing, isProbed, isCutOff, isNamedRelay, isOnlyRelay } = connector;
    const same = known.get(peer.publicKey);
    const isReached = same?.isCutOff === true && !isCutOff;
    if (same?.inService === inService && same.isProbed === isProbed) {
      // Keeps the object: its answer may be in transit.
      same.peer = peer;
      same.isSharing = isSharing;
      same.isCutOff = isCutOff;
      same.isNamedRelay = isNamedRelay;
      same.isOnlyRelay = isOnlyRelay;
      if (isReached) same.probed = Number.POSITIVE_INFINITY;
      return same;
    }
    const hasSession = isFresh(sessions.get(peer.publicKey) ?? null, now);
    const isResumed = isProbed && same?.isProbed === false;
    const isKnown = same !== undefined && (!isResumed || isLasting(same.liveness, hasSession));
    const liveness = isKnown ? resetSilence(same.liveness) : unknownLiveness(savedStateOf(peer, evaluation));
    const pace = { every: everyOther, probed: Number.POSITIVE_INFINITY, begun: 0 };
    const rtt = same?.rtt ?? null;
    const heardOrder = isKnown ? same.heardOrder : (savedFailureOf(peer, evaluation)?.heard ?? null);
    const kept = { isSharing, isProbed, isCutOff, isNamedRelay, isOnlyRelay, heardOrder };
    return { peer, inService, ...kept, hasOther: false, liveness, ...pace, rtt, rxBytes: null, hasSession };
  });
}

export function isDue(connector: ProbedConnector): boolean {
  const { probed, every, liveness } = connector;
  const isDoubted = liveness.answers && isUncertain(liveness, connector);
  // A timer is never exact.
  return probed >= (isDoubted ? every / 2 : every) - everyRound / 2;
}

export function isAnswering({ liveness }: ProbedConnector): boolean {
  return liveness.heard && liveness.state !== 'silent';
}

/** True if a handshake must be forced: none has completed for too long, or none that counts. */
export function isOverdue(connector: ProbedConnector): boolean {
  const { liveness, hasSession, begun } = connector;
  if (!isNew(liveness) || begun === null) return false;
  return needsHandshake(liveness, connector) || (!hasSession && begun >= renewAfter - inexact);
}

/** Counters cost a process: read at once for a possibly dead connector, else with each probe. */
export function needsCounters(connector: ProbedConnector): boolean {
  return isUncertain(connector.liveness, connector) && (connector.liveness.answers || isDue(connector));
}

/** The number for a connector that becomes silent now, if it ever answered. */
export function nextHeardOrder(probed: readonly ProbedConnector[]): number {
  return 1 + Math.max(0, ...probed.map(({ heardOrder }) => heardOrder ?? 0));
}

/** Undoes a silence that proved nothing, because this host was cut off itself. */
export function restoreConnector(connector: ProbedConnector): void {
  const { liveness } = connector;
  if (liveness.state !== 'silent') return;
  const failures = Math.max(0, liveness.failures - 1);
  connector.liveness = { ...liveness, state: 'trusted', silence: 0, answers: true, failures };
  connector.heardOrder = null;
}

/** From the state on disk. */
function savedStateOf(peer: Peer, evaluation: Evaluation | null): Liveness['state'] {
  const failure = savedFailureOf(peer, evaluation);
  return failure ? (failure.back ? 'back' : 'silent') : 'trusted';
}

function savedFailureOf({ id }: Peer, evaluation: Evaluation | null): PeerFailure | undefined {
  return evaluation?.state.failed.find(({ peer }) => peer === id);
}

/**
 * Returns the connectors with direct packets. Liveness matters among several, and if this host is a
 * connector that relays what it cannot deliver.
 */
function findConnectors(
  evaluation: Evaluation | null,
): Pick<
  ProbedConnector,
  'peer' | 'inService' | 'isSharing' | 'isProbed' | 'isCutOff' | 'isNamedRelay' | 'isOnlyRelay'
>[] {
  if (evaluation === null) return [];
  const { state, desired, actual } = evaluation;
  const reached = new Map(desired.config.peers.map((peer) => [peer.publicKey, peer]));
  const { map } = state.membership;
  const connectors = map.peers.filter((peer) => peer.type === 'connector' && reached.has(peer.publicKey));
  const isProbed = connectors.length > 1 || state.enrollment.type === 'connector';
  const services = judgeRoutes(evaluation).map(({ service }) => service);
  const sharing = new Set(services.flatMap(({ others }) => others.map(({ publicKey }) => publicKey)));
  const preceding = new Set(
    services.flatMap(({ is, others }) => (is === 'standby' ? (others[0]?.publicKey ?? []) : [])),
  );
  // In service, it carries routes or the range that it relays, in addition to its address, or it
  // serves a route for which this host stands by.
  const isServing = ({ publicKey }: Peer) =>
    (reached.get(publicKey)?.allowedIps.length ?? 0) > 1 || preceding.has(publicKey);
  const carriesRoutes = ({ publicKey }: Peer) =>
    preceding.has(publicKey) || reached.get(publicKey)?.allowedIps.some((prefix) => !covers(map.cidr, prefix)) === true;
  const endpoints = new Map(actual.device?.peers.map(({ publicKey, endpoint }) => [publicKey, endpoint]));
  const isCutOff = ({ publicKey }: Peer) => {
    const endpoint = endpoints.get(publicKey);
    return actual.unread === undefined && endpoint != null && !hasPathTo(endpoint.host, actual.underlay);
  };
  const needsRelay = findOwnPeer(map, state)?.endpoint === null;
  const isNamedRelay = ({ id, withdrawn }: Peer) => needsRelay && id === map.relay && !withdrawn.includes(map.cidr);
  return connectors.map((peer) => ({
    ...{ peer, inService: isServing(peer), isSharing: sharing.has(peer.publicKey), isProbed },
    ...{ isCutOff: isCutOff(peer), isNamedRelay: isNamedRelay(peer) },
    isOnlyRelay: isNamedRelay(peer) && !carriesRoutes(peer),
  }));
}
