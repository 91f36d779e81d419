import type { PublicKey } from '../../../core/crypto/keys.ts';
import { CpnError } from '../../../core/errors/index.ts';
import type { ActualPeer } from '../../../core/host-state/actual.ts';
import type { Tools } from '../../tools.ts';

/** The peers of an interface with their counters; none if the interface is missing, which a pass repairs. */
export async function readTraffic({ host }: Tools, link: string): Promise<ReadonlyMap<PublicKey, ActualPeer>> {
  try {
    return new Map((await host.peers(link)).map((peer) => [peer.publicKey, peer]));
  } catch (error) {
    if (error instanceof CpnError) return new Map();
    throw error;
  }
}
