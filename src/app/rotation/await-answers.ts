import type { PublicKey } from '../../core/keys.ts';
import type { DesiredPeer, Peer } from '../../core/model.ts';
import type { Witness } from '../../store/state.ts';
import type { Confirming } from '../confirm.ts';
import type { Survey } from '../survey.ts';
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
interface Asked extends Witness {
  readonly peer: Peer;
  readonly wanted: DesiredPeer;
}

/**
 * Asks all that answered before for a handshake with the key that the interface has now, again and again, until all answered, or
 * the first one did and the others had some time, or the time is over.
 *
 * @returns the first that answered; null where none did
 */
export async function awaitAnswers(
  tools: Tools,
  { state, desired }: Survey,
  witnesses: readonly Witness[],
  { withinMs, signal }: Confirming,
): Promise<Peer | null> {
  const peers = new Map(state.membership.map.peers.map((peer) => [peer.publicKey, peer]));
  const wanted = new Map(desired.config.peers.map((peer) => [peer.publicKey, peer]));
  const asked = witnesses.flatMap((witness): Asked[] => {
    const [peer, entry] = [peers.get(witness.publicKey), wanted.get(witness.publicKey)];
    return peer && entry ? [{ ...witness, peer, wanted: entry }] : [];
  });
  const renewed = new Set<PublicKey>();
  let first: Peer | null = null;
  let deadline = tools.monotonic() + withinMs / 1000;
  let waiting = asked;
  for (let round = 0; waiting.length > 0; round += 1) {
    for (const { peer } of waiting) await tools.host.nudge(peer.address);
    const until = tools.monotonic() + (waits[Math.min(round, waits.length - 1)] ?? look) / 1000;
    while (waiting.length > 0 && tools.monotonic() < until) {
      await tools.sleep(look, signal);
      const seen = await readTable(tools, state.interface);
      const answered = ({ publicKey, latestHandshake }: Witness) => {
        const latest = seen.get(publicKey)?.latestHandshake ?? null;
        return latest !== null && (renewed.has(publicKey) || latest > latestHandshake);
      };
      const [heard] = waiting.filter(answered);
      waiting = waiting.filter((each) => !answered(each));
      if (heard && first === null) {
        first = heard.peer;
        deadline = Math.min(deadline, tools.monotonic() + grace);
      }
      if (tools.monotonic() >= deadline || signal?.aborted) return first;
    }
    if (waiting.length > 0) await renew(tools, state.interface, waiting);
    for (const { publicKey } of waiting) renewed.add(publicKey);
  }
  return first;
}

/** A peer that is put in again keeps where it was found. */
async function renew(tools: Tools, link: string, waiting: readonly Asked[]): Promise<void> {
  const seen = await readTable(tools, link);
  const peers = waiting.map(({ publicKey, wanted }) => {
    return { ...wanted, endpoint: seen.get(publicKey)?.endpoint ?? wanted.endpoint };
  });
  await tools.host.apply({ do: 'renew-peers', link, peers, changes: [] });
}

async function readTable(tools: Tools, link: string) {
  return new Map((await tools.host.peers(link)).map((peer) => [peer.publicKey, peer]));
}
