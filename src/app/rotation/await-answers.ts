import type { ActualPeer } from '../../core/actual.ts';
import { Locked } from '../../core/errors.ts';
import type { PublicKey } from '../../core/keys.ts';
import type { DesiredPeer, NetworkMap, Peer } from '../../core/model.ts';
import type { Witness } from '../../store/state.ts';
import type { Confirming } from '../confirm.ts';
import type { Tools } from '../tools.ts';

/** Milliseconds between two looks at WireGuard's table. */
const look = 100;
/**
 * Milliseconds for which a handshake is waited for before the next is made: soon again at first, as a peer learns of the new key a moment
 * later than the control plane, and long at the end, as an answer may have far to go.
 */
const waits = [400, 600, 800, 1_000, 1_300, 2_000, 4_000] as const;
/** Seconds in which those who did not answer yet are asked again after the first that did. */
const grace = 6;

/** A peer that is to answer, and how it is to be put in again. */
export interface Asked {
  readonly peer: Peer;
  readonly wanted: DesiredPeer;
  /** The handshake that was there before, in seconds since the epoch; null where the peer has another key since. */
  readonly latestHandshake: number | null;
}

/** The peers that are to answer. */
export interface Asking {
  readonly link: string;
  /** Finds them as the interface has them now. */
  find(): Promise<readonly Asked[]>;
  /** Runs work on the interface while nothing else does. @throws Locked */
  exclusively(work: () => Promise<void>): Promise<void>;
}

/**
 * Asks all that answered before for a handshake with the key that the interface has now, again and again, until all answered, or
 * the first one did and the others had some time, or the time is over.
 *
 * @returns the first that answered; null where none did
 */
export async function awaitAnswers(
  tools: Tools,
  { link, find, exclusively }: Asking,
  { withinMs, signal }: Confirming,
): Promise<Peer | null> {
  const renewed = new Set<PublicKey>();
  const answered = new Set<Peer['id']>();
  let first: Peer | null = null;
  let deadline = tools.monotonic() + withinMs / 1000;
  const findWaiting = async () => (await find()).filter(({ peer }) => !answered.has(peer.id));
  for (let round = 0; ; round += 1) {
    let waiting = await findWaiting();
    if (waiting.length === 0) return first;
    for (const { peer } of waiting) await tools.host.nudge(peer.address);
    const until = tools.monotonic() + (waits[Math.min(round, waits.length - 1)] ?? look) / 1000;
    while (waiting.length > 0 && tools.monotonic() < until) {
      await tools.sleep(look, signal);
      const seen = await readTable(tools, link).catch(async (error) => {
        // The interface is gone where the network was taken down or left meanwhile.
        waiting = await findWaiting();
        if (waiting.length > 0) throw error;
        return new Map<PublicKey, ActualPeer>();
      });
      const hasAnswered = ({ peer: { publicKey }, latestHandshake }: Asked) => {
        const latest = seen.get(publicKey)?.latestHandshake ?? null;
        return latest !== null && (renewed.has(publicKey) || latestHandshake === null || latest > latestHandshake);
      };
      for (const { peer } of waiting.filter(hasAnswered)) {
        answered.add(peer.id);
        if (first !== null) continue;
        first = peer;
        deadline = Math.min(deadline, tools.monotonic() + grace);
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
export function findAsked(
  map: NetworkMap,
  peers: readonly DesiredPeer[],
  witnesses: readonly Witness[],
): readonly Asked[] {
  const byKey = new Map(map.peers.map((peer) => [peer.publicKey, peer]));
  const byId = new Map(map.peers.map((peer) => [peer.id, peer]));
  const wanted = new Map(peers.map((peer) => [peer.publicKey, peer]));
  return witnesses.flatMap(({ publicKey, peer: id, latestHandshake }): Asked[] => {
    const peer = byKey.get(publicKey) ?? (id === undefined ? undefined : byId.get(id));
    const entry = peer && wanted.get(peer.publicKey);
    if (peer === undefined || entry === undefined) return [];
    return [{ peer, wanted: entry, latestHandshake: peer.publicKey === publicKey ? latestHandshake : null }];
  });
}

/** A peer that is put in again keeps where it was found. */
async function renew(tools: Tools, link: string, waiting: readonly Asked[]): Promise<void> {
  const seen = await readTable(tools, link);
  const peers = waiting.map(({ wanted }) => {
    return { ...wanted, endpoint: seen.get(wanted.publicKey)?.endpoint ?? wanted.endpoint };
  });
  await tools.host.apply({ do: 'renew-peers', link, peers, changes: [] });
}

async function readTable(tools: Tools, link: string) {
  return new Map((await tools.host.peers(link)).map((peer) => [peer.publicKey, peer]));
}
