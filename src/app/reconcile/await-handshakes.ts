import type { PublicKey } from '../../core/crypto/keys.ts';
import { Locked } from '../../core/errors/index.ts';
import type { ActualPeer } from '../../core/host-state/actual.ts';
import type { NetworkMap, Peer } from '../../core/map/model.ts';
import type { DesiredPeer } from '../../core/wg-quick/tunnel-config.ts';
import type { ConfirmingPeerKey } from '../../store/state/state.ts';
import type { Tools } from '../tools.ts';

/** Milliseconds between two looks at WireGuard's table. */
const pollMs = 100;
/**
 * Milliseconds for which a handshake is waited for before the next is made: soon again at first, as a peer learns of the new key a moment
 * later than the control plane, and long at the end, as an answer may have far to go.
 */
const retryDelaysMs = [400, 600, 800, 1_000, 1_300, 2_000, 4_000] as const;
/** Seconds in which those who did not answer yet are asked again after the first that did. */
const graceSeconds = 6;

/** A peer that is to answer, and how it is to be put in again. */
export interface AwaitedPeer {
  readonly peer: Peer;
  readonly wanted: DesiredPeer;
  /** The handshake that was there before, in seconds since the epoch; null where the peer has another key since. */
  readonly latestHandshake: number | null;
}

/** The peers that are to answer. */
export interface HandshakeQuery {
  readonly link: string;
  /** Finds them as the interface has them now. */
  find(): Promise<readonly AwaitedPeer[]>;
  /** Runs work on the interface while nothing else does. @throws Locked */
  exclusively(work: () => Promise<void>): Promise<void>;
}

/**
 * Triggers handshakes with all that answered before, with the interface's present key, until all answered, or
 * the first one did and the others had some time, or the time is over.
 *
 * @returns the first that answered; null where none did
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
      // The interface is gone where the network was taken down or left meanwhile.
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
      // A pass is at work on the interface: the next round tries again.
      if (!(error instanceof Locked)) throw error;
    });
  }
}

/** The peers of witnesses, with the keys that they have now. */
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

/** A peer that is put in again keeps where it was found. */
async function renew(tools: Pick<Tools, 'host'>, link: string, waiting: readonly AwaitedPeer[]): Promise<void> {
  const observed = await readTable(tools, link);
  // A pass makes the interface again.
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
