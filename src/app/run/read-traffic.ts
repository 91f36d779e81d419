import type { ActualPeer } from '../../core/actual.ts';
import { CpnError } from '../../core/errors.ts';
import type { PublicKey } from '../../core/keys.ts';
import type { Tools } from '../tools.ts';

/** The peers of an interface with their counters; none where the interface is gone, which is for a pass to find. */
export async function readTraffic({ host }: Tools, link: string): Promise<ReadonlyMap<PublicKey, ActualPeer>> {
  try {
    return new Map((await host.peers(link)).map((peer) => [peer.publicKey, peer]));
  } catch (error) {
    if (error instanceof CpnError) return new Map();
    throw error;
  }
}
