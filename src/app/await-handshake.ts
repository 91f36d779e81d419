import { ownKeys } from '../core/own-peer.ts';
import type { Joined } from '../store/state.ts';
import { questionOf } from './survey.ts';
import type { Tools } from './tools.ts';

/** Milliseconds. A handshake that got no answer is tried again after 5 s (REKEY_TIMEOUT); so this is long enough for two. */
const usualPatience = 7_000;
const pause = 250;

/**
 * Waits until some peer answered, and says whether one did; null where this host knows no peer that it can dial. The
 * other side may not have heard of this host yet, so that no handshake is no failure.
 */
export async function awaitHandshake(tools: Tools, state: Joined, patience: number | null): Promise<boolean | null> {
  const { map } = state.membership;
  const own = ownKeys(state);
  const dialled = map.peers.filter((peer) => !own.includes(peer.publicKey) && peer.endpoint !== null);
  if (dialled.length === 0) return null;
  if (patience === 0) return false;
  tools.progress('waiting for a first handshake');
  for (const peer of dialled.slice(0, 16)) await tools.host.nudge(peer.address);
  for (let waited = 0; waited < (patience ?? usualPatience); waited += pause) {
    const { device } = await tools.host.observe({ ...questionOf(state), firewall: false, sysctls: [] });
    if (device?.peers.some((peer) => peer.latestHandshake !== null)) return true;
    await tools.sleep(pause);
  }
  return false;
}
