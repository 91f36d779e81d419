import { CpnError, Unreachable } from '../../core/errors/index.ts';
import type { PeerId } from '../../core/map/model.ts';
import type { Joined } from '../../store/state/state.ts';
import { accessOf } from '../access.ts';
import { secondsNow, type Tools } from '../tools.ts';
import { awaitHandshakes, findAwaitedPeers } from './await-handshakes.ts';
import { type ConfirmingPeer, findConfirmingPeers, isAnyAnswering } from './confirming-peers.ts';
import type { Evaluation } from './evaluate-network.ts';

/** How a change that could cut the host off is confirmed. */
export interface ConfirmOptions {
  /** Milliseconds within which the control plane, or a peer, must answer again. */
  readonly withinMs: number;
  /** Ends the wait immediately. A change that is not confirmed by then is reverted. */
  readonly signal?: AbortSignal;
  /** True if the service sent the newest map twice: peers that it lacks then count as removed. */
  readonly isMapRepeated?: boolean;
  /** Peers that the service reports as removed. They do not count as lost. */
  readonly removed?: readonly PeerId[];
  /** True if only a map from the control plane confirms; a reachable peer or service does not. */
  readonly needsMap?: boolean;
}

/** Milliseconds for one request to the control plane, and between two rounds. */
const requestTimeoutMs = 5_000;
const pause = 250;
/** Milliseconds in which userspace WireGuard may send as before: it detects new routes late. */
const settleMs = 1_000;

/** True if the control plane or a peer answers now. Only then is later silence evidence. */
export async function canBeConfirmed(tools: Pick<Tools, 'connect' | 'now'>, planned: Evaluation): Promise<boolean> {
  if (findConfirmingPeers(planned, secondsNow(tools)).length > 0) return true;
  return isApiAnswering(tools, planned.state, { deadlineMs: requestTimeoutMs, signal: undefined });
}

/** True if a peer accepts TCP or, as a firewall may prevent that, completes a forced handshake. */
export async function isLossConfirmed(
  tools: Tools,
  planned: Evaluation,
  peers: readonly ConfirmingPeer[],
  { withinMs, signal }: ConfirmOptions,
): Promise<boolean> {
  const half = { withinMs: withinMs / 2, ...(signal && { signal }) };
  if (await isConfirmed(tools, planned.state, { peers, includesApi: false }, half)) return true;
  const reached = peers.flatMap(({ publicKey, latestHandshake, isReached }) =>
    isReached && latestHandshake !== null ? [{ publicKey, latestHandshake }] : [],
  );
  const { state, desired } = planned;
  const asked = findAwaitedPeers(state.membership.map, desired.config.peers, reached);
  // The caller holds the lock.
  const asking = {
    link: state.interface,
    find: async () => asked,
    exclusively: (work: () => Promise<void>) => work(),
  };
  return (await awaitHandshakes(tools, asking, half)) !== null;
}

export async function isConfirmed(
  tools: Tools,
  state: Joined,
  { peers, includesApi }: { readonly peers: readonly ConfirmingPeer[]; readonly includesApi: boolean },
  { withinMs, signal }: ConfirmOptions,
): Promise<boolean> {
  if (accessOf(state) === null && peers.length === 0) return true;
  const deadline = tools.monotonic() + withinMs / 1000;
  await tools.sleep(Math.min(settleMs, withinMs / 4), signal);
  while (!signal?.aborted) {
    if (
      includesApi &&
      (await isApiAnswering(tools, state, { deadlineMs: Math.min(requestTimeoutMs, withinMs), signal }))
    )
      return true;
    // The control plane may be down for unrelated reasons. A peer that still answers confirms too.
    const reached = peers.filter((peer) => peer.isReached);
    if (!signal?.aborted && (await isAnyAnswering(tools, state, reached))) return true;
    await tools.sleep(pause, signal);
    if (tools.monotonic() >= deadline) break;
  }
  return false;
}

/** True once the control plane sends the map, or replies that it is unchanged. */
export async function isMapReceived(
  tools: Pick<Tools, 'connect' | 'monotonic' | 'sleep'>,
  state: Joined,
  { withinMs, signal }: ConfirmOptions,
): Promise<boolean> {
  const deadline = tools.monotonic() + withinMs / 1000;
  while (!signal?.aborted) {
    const asking = { deadlineMs: Math.min(requestTimeoutMs, withinMs), signal, needsMap: true };
    if (await isApiAnswering(tools, state, asking)) return true;
    await tools.sleep(pause, signal);
    if (tools.monotonic() >= deadline) break;
  }
  return false;
}

/** Any reply, also a refusal, proves that it is reachable. With `needsMap`, only the map counts. */
async function isApiAnswering(
  tools: Pick<Tools, 'connect'>,
  state: Joined,
  { deadlineMs, signal, needsMap = false }: { deadlineMs: number; signal: AbortSignal | undefined; needsMap?: boolean },
): Promise<boolean> {
  const access = accessOf(state);
  if (access === null) return false;
  try {
    // Only a new connection proves the path. The following long polls reuse it.
    const api = await tools.connect(state, { deadlineMs, connection: 'leave' });
    await api.readMap(access.network, access.token, state.membership.map, signal && { seconds: 0, signal });
    return true;
  } catch (error) {
    if (signal?.aborted) return false;
    if (!(error instanceof CpnError)) throw error;
    if (needsMap) return false;
    return error instanceof Unreachable ? error.heard : true;
  }
}
