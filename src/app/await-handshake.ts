import type { Peer } from '../core/model.ts';
import { ownKeys } from '../core/own-peer.ts';
import type { Joined } from '../store/state.ts';
import { questionOf } from './survey.ts';
import type { Tools } from './tools.ts';

/** Milliseconds. A handshake that got no answer is tried again after 5 s (REKEY_TIMEOUT); so this is long enough for two. */
const usualPatience = 7_000;
const pause = 250;

/** What became of waiting for a first handshake. */
export interface Greeting {
  /** Whether a peer answered; null where nobody could be dialled. */
  readonly handshake: boolean | null;
  /** The first that did. */
  readonly answered: Peer | null;
}

/**
 * Waits until some peer answered, and says whether and which. The other side may not have heard of this host yet, so that no
 * handshake is no failure.
 */
export async function awaitHandshake(tools: Tools, state: Joined, patience: number | null): Promise<Greeting> {
  const { map } = state.membership;
  const own = ownKeys(state);
  const dialled = map.peers.filter((peer) => !own.includes(peer.publicKey) && peer.endpoint !== null);
  if (dialled.length === 0) return { handshake: null, answered: null };
  if (patience === 0) return { handshake: false, answered: null };
  tools.progress(`waiting for a first handshake with ${describePeers(dialled)}`);
  for (const peer of dialled.slice(0, 16)) await tools.host.nudge(peer.address);
  for (let waited = 0; waited < (patience ?? usualPatience); waited += pause) {
    const { device } = await tools.host.observe({ ...questionOf(state), firewall: false, sysctls: [] });
    const heard = device?.peers.filter((peer) => peer.latestHandshake !== null).map(({ publicKey }) => publicKey) ?? [];
    if (heard.length > 0) {
      return { handshake: true, answered: map.peers.find(({ publicKey }) => heard.includes(publicKey)) ?? null };
    }
    await tools.sleep(pause);
  }
  return { handshake: false, answered: null };
}

const mostNamed = 3;

function describePeers(peers: readonly Peer[]): string {
  const names = peers.slice(0, mostNamed).map(({ name }) => name);
  const more = peers.length > names.length ? ` or ${peers.length - names.length} more` : '';
  return `${names.join(', ')}${more}`;
}
