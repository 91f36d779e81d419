import type { Peer } from '../../core/map/model.ts';
import { ownKeys } from '../../core/map/own-peer.ts';
import type { Joined } from '../../store/state/state.ts';
import type { Tools } from '../tools.ts';

/** Milliseconds for two attempts: WireGuard repeats a handshake after 5 s (REKEY_TIMEOUT). */
const defaultTimeout = 7_000;
const pause = 250;
const mostNamed = 3;
const mostTriggered = 16;

export interface HandshakeResult {
  /** True if a peer answered; null if no peer has an endpoint. */
  readonly handshake: boolean | null;
  readonly answered: Peer | null;
}

/** Without a handshake the join still succeeds: peers may not have received the new map yet. */
export async function awaitHandshake(
  tools: Pick<Tools, 'host' | 'sleep' | 'progress'>,
  state: Joined,
  timeout: number | null,
): Promise<HandshakeResult> {
  const { map } = state.membership;
  const own = ownKeys(state);
  const dialled = map.peers.filter((peer) => !own.includes(peer.publicKey) && peer.endpoint !== null);
  if (dialled.length === 0) return { handshake: null, answered: null };
  if (timeout === 0) return { handshake: false, answered: null };
  const more = dialled.length > mostNamed ? ` or ${dialled.length - mostNamed} more` : '';
  const named = dialled.slice(0, mostNamed).map(({ name }) => name);
  tools.progress(`waiting for a first handshake with ${named.join(', ')}${more}`);
  for (const peer of dialled.slice(0, mostTriggered)) await tools.host.triggerHandshake(peer.address);
  for (let waited = 0; waited < (timeout ?? defaultTimeout); waited += pause) {
    const device = await tools.host.device(state.interface);
    const keys = device?.peers.filter((peer) => peer.latestHandshake !== null).map(({ publicKey }) => publicKey) ?? [];
    if (keys.length > 0) {
      return { handshake: true, answered: map.peers.find(({ publicKey }) => keys.includes(publicKey)) ?? null };
    }
    await tools.sleep(pause);
  }
  return { handshake: false, answered: null };
}
