import type { PublicKey } from '../../core/crypto/keys.ts';
import { Locked } from '../../core/errors/index.ts';
import type { ActualPeer } from '../../core/host-state/actual.ts';
import type { NetworkMap, Peer } from '../../core/map/model.ts';
import type { DesiredPeer } from '../../core/wg-quick/parse.ts';
import type { ConfirmingPeerKey } from '../../store/state/state.ts';
import type { Tools } from '../tools.ts';

/** Milliseconds between two reads of WireGuard's table. */
const pollMs = 100;
/**
 * Milliseconds until the next handshake attempt. Short at first, because a peer receives the new
 * key shortly after the control plane; long at the end, because an answer may travel far.
 */
const retryDelaysMs = [400, 600, 800, 1_000, 1_300, 2_000, 4_000] as const;
/** Seconds in which the remaining peers are still tried after the first answer. */
const graceSeconds = 6;

/** A peer that must answer, and its configuration for adding it again. */
export interface AwaitedPeer {
  readonly peer: Peer;
  readonly wanted: DesiredPeer;
  /** The last handshake in seconds since the epoch; null if the peer changed its key since. */
  readonly latestHandshake: number | null;
}

export interface HandshakeQuery {
  readonly link: string;
  /** Finds them with their present state on the interface. */
  find(): Promise<readonly AwaitedPeer[]>;
  /** Runs work on the interface under the lock. @throws Locked */
  exclusively(work: () => Promise<void>): Promise<void>;
}

/**
 * Triggers handshakes with all peers that answered before, with the interface's present key. It
 * ends once all answered, or `graceSeconds` after the first answer, or at the timeout.
 *
 * @returns the first peer that answered, or null
 */
export async function awaitHandshakes(
  tools: Pick<Tools, 'host' | 'monotonic' | 'sleep'>,
  { link, find, exclusively }: HandshakeQuery,
  { withinMs, signal }: { readonly withinMs: number; readonly signal?: AbortSignal },
): Promise<Peer | null> {
  const renewed = new Set<PublicKey>();
  const answered = new Set<Peer['id']>();
  let first: Peer | null = null;
  let deadline = tools.monotonic() + withinMs / 1000;
  const findWaiting = async () => (await find()).filter(({ peer }) => !answered.has(peer.id));
  for (let round = 0; ; round += 1) {
    let waiting = await findWaiting();
    if (waiting.length === 0) return first;
    for (const { peer } of waiting) await tools.host.triggerHandshake(peer.address);
    const until = tools.monotonic() + (retryDelaysMs[Math.min(round, retryDelaysMs.length - 1)] ?? pollMs) / 1000;
    while (waiting.length > 0 && tools.monotonic() < until) {
      await tools.sleep(pollMs, signal);
      const observed = await readTable(tools, link);
      // The interface is missing if the network was taken down or left meanwhile.
      if (observed === null) waiting = await findWaiting();
      const hasAnswered = ({ peer: { publicKey }, latestHandshake }: AwaitedPeer) => {
        const latest = observed?.get(publicKey)?.latestHandshake ?? null;
        return latest !== null && (renewed.has(publicKey) || latestHandshake === null || latest > latestHandshake);
      };
      for (const { peer } of waiting.filter(hasAnswered)) {
        answered.add(peer.id);
        if (first !== null) continue;
        first = peer;
        deadline = Math.min(deadline, tools.monotonic() + graceSeconds);
      }
      waiting = waiting.filter(({ peer }) => !answered.has(peer.id));
      if (tools.monotonic() >= deadline || signal?.aborted) return first;
    }
    if (waiting.length === 0) continue;
    await exclusively(async () => {
      const present = await findWaiting();
      if (present.length > 0) await renew(tools, link, present);
      for (const { peer } of present) renewed.add(peer.publicKey);
    }).catch((error) => {
      // A pass holds the lock: the next round tries again.
      if (!(error instanceof Locked)) throw error;
    });
  }
}

/** Returns the confirming peers with their present keys. */
export function findAwaitedPeers(
  map: NetworkMap,
  peers: readonly DesiredPeer[],
  confirmingPeers: readonly ConfirmingPeerKey[],
): readonly AwaitedPeer[] {
  const byKey = new Map(map.peers.map((peer) => [peer.publicKey, peer]));
  const byId = new Map(map.peers.map((peer) => [peer.id, peer]));
  const wanted = new Map(peers.map((peer) => [peer.publicKey, peer]));
  return confirmingPeers.flatMap(({ publicKey, peer: id, latestHandshake }): AwaitedPeer[] => {
    const peer = byKey.get(publicKey) ?? (id === undefined ? undefined : byId.get(id));
    const entry = peer && wanted.get(peer.publicKey);
    if (peer === undefined || entry === undefined) return [];
    return [{ peer, wanted: entry, latestHandshake: peer.publicKey === publicKey ? latestHandshake : null }];
  });
}

/** Removes peers and adds them again. A peer keeps its learned endpoint. */
async function renew(tools: Pick<Tools, 'host'>, link: string, waiting: readonly AwaitedPeer[]): Promise<void> {
  const observed = await readTable(tools, link);
  // A pass creates the interface again.
  if (observed === null) return;
  const peers = waiting.map(({ wanted }) => {
    return { ...wanted, endpoint: observed.get(wanted.publicKey)?.endpoint ?? wanted.endpoint };
  });
  await tools.host.apply({ do: 'renew-peers', link, peers, changes: [] });
}

async function readTable(tools: Pick<Tools, 'host'>, link: string): Promise<ReadonlyMap<PublicKey, ActualPeer> | null> {
  const device = await tools.host.device(link);
  return device && new Map(device.peers.map((peer) => [peer.publicKey, peer]));
}
