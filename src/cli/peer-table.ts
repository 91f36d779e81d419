import type { NetworkPeer } from '../api/service.ts';
import { table } from './output.ts';

/** The peers of a network, a row each, as an administrator sees them; with priorities where a connector has one. */
export function peerTable(peers: readonly NetworkPeer[]): string {
  const isRanked = peers.some(({ priority }) => priority !== undefined && priority !== 0);
  return table(
    ['peer', 'name', 'type', ...(isRanked ? ['priority'] : []), 'address', 'endpoint', 'public key'],
    peers.map((peer) => [
      String(peer.id),
      peer.name,
      peer.peer_type,
      ...(isRanked ? [peer.peer_type === 'connector' ? String(peer.priority ?? 0) : '-'] : []),
      peer.address,
      peer.endpoint ?? '-',
      peer.public_key,
    ]),
  );
}
