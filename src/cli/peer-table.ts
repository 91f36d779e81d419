import type { NetworkPeer } from '../api/service.ts';
import { table } from './output.ts';

/** The peers of a network, a row each, as an administrator sees them. */
export function peerTable(peers: readonly NetworkPeer[]): string {
  return table(
    ['peer', 'name', 'type', 'address', 'endpoint', 'public key'],
    peers.map((peer) => [
      String(peer.id),
      peer.name,
      peer.peer_type,
      peer.address,
      peer.endpoint ?? '-',
      peer.public_key,
    ]),
  );
}
