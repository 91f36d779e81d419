import {
  isDoubtful,
  isNew,
  type Liveness,
  needsHandshake,
  renewAfter,
  resetSilence,
  unknownLiveness,
} from '../../../core/health/liveness.ts';
import type { Peer } from '../../../core/map/model.ts';
import type { Evaluation } from '../../reconcile/evaluate-network.ts';

/** Seconds between two probes of a connector in service or without an answer yet, and of a standby or dead one. */
export const everyInService = 0.5;
export const everyOther = 2.5;

export interface ProbedConnector {
  peer: Peer;
  readonly inService: boolean;
  liveness: Liveness;
  /** Seconds between two probes. */
  every: number;
  /** Seconds since the last one. */
  probed: number;
  /** Bytes received when the connector first failed to answer; null while it answers. */
  rxBytes: number | null;
  hasSession: boolean;
  /** Seconds since a probe started a handshake; null while another one is being forced. */
  begun: number | null;
}

/** The connectors to probe from now on; those that stay as they were keep their liveness. */
export function updateProbed(before: readonly ProbedConnector[], evaluation: Evaluation | null): ProbedConnector[] {
  const known = new Map(before.map((each) => [each.peer.publicKey, each]));
  return findConnectors(evaluation).map(({ peer, inService }) => {
    const same = known.get(peer.publicKey);
    if (same?.inService === inService) {
      // The same object: its answer may be on the way.
      same.peer = peer;
      return same;
    }
    const liveness = same ? resetSilence(same.liveness) : unknownLiveness(savedStateOf(peer, evaluation));
    const pace = { every: everyOther, probed: everyOther };
    return { peer, inService, liveness, ...pace, rxBytes: null, hasSession: false, begun: 0 };
  });
}

export function isDue({ probed, every }: ProbedConnector): boolean {
  // A timer is never exact.
  return probed >= every - everyInService / 2;
}

export function isAnswering({ liveness }: ProbedConnector): boolean {
  return liveness.heard && liveness.state !== 'silent';
}

/** True when a handshake is to be forced: there was none for too long, or none that counts. */
export function isOverdue({ liveness, inService, hasSession, begun }: ProbedConnector): boolean {
  if (!isNew(liveness) || begun === null || begun < renewAfter) return false;
  return !hasSession || needsHandshake(liveness, inService);
}

/** Reading the counters costs a process: at once for a connector that may be dead, with each probe for others. */
export function needsCounters(connector: ProbedConnector): boolean {
  return isDoubtful(connector.liveness, connector) && (connector.liveness.answers || isDue(connector));
}

/** From the state on disk. */
function savedStateOf({ id }: Peer, evaluation: Evaluation | null): Liveness['state'] {
  const failure = evaluation?.state.failed.find((each) => each.peer === id);
  return failure ? (failure.back ? 'back' : 'silent') : 'trusted';
}

/**
 * The connectors that this host exchanges packets with directly, where their liveness matters: where there are several, or where this
 * host is one itself, and relays what it cannot deliver.
 */
function findConnectors(evaluation: Evaluation | null): { peer: Peer; inService: boolean }[] {
  if (evaluation === null) return [];
  const { state, desired } = evaluation;
  const reached = new Map(desired.config.peers.map((peer) => [peer.publicKey, peer]));
  const connectors = state.membership.map.peers.filter(
    (peer) => peer.type === 'connector' && reached.has(peer.publicKey),
  );
  const matters = connectors.length > 1 || state.enrollment.type === 'connector';
  if (!matters) return [];
  // One in service carries, in addition to its own address, routes or the range that it relays to.
  return connectors.map((peer) => ({ peer, inService: (reached.get(peer.publicKey)?.allowedIps.length ?? 0) > 1 }));
}
