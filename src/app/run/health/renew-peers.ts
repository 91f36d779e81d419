import type { PublicKey } from '../../../core/crypto/keys.ts';
import { CpnError } from '../../../core/errors/index.ts';
import type { ActualPeer } from '../../../core/host-state/actual.ts';
import type { HostTools, Tools } from '../../tools.ts';

/**
 * Forces a handshake with some peers of an interface, which lose their session. WireGuard retries
 * only every 5 s. Holds the lock, because a pass may change the same peers.
 *
 * @param choose chooses the peers from WireGuard's table, read under the lock
 * @returns the peers that were renewed; empty after a failure, when WireGuard continues its own
 *   retries
 */
export async function renewPeers(
  tools: HostTools,
  link: string,
  choose: (known: ReadonlyMap<PublicKey, ActualPeer>) => readonly ActualPeer[],
): Promise<readonly ActualPeer[]> {
  try {
    return await tools.store.lock(async () => {
      const peers = choose(await readTraffic(tools, link));
      if (peers.length > 0) await tools.host.apply({ do: 'renew-peers', link, peers, changes: [] });
      return peers;
    });
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    return [];
  }
}

/** The peers of an interface with their counters; empty without the interface. */
export async function readTraffic(
  { host }: Pick<Tools, 'host'>,
  link: string,
): Promise<ReadonlyMap<PublicKey, ActualPeer>> {
  try {
    const device = await host.device(link);
    return new Map(device?.peers.map((peer) => [peer.publicKey, peer]));
  } catch (error) {
    if (error instanceof CpnError) return new Map();
    throw error;
  }
}
