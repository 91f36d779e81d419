import type { NetworkPeer } from '../../api/service.ts';
import { table } from './output.ts';

/** Columns that stand only where a peer has something in them. */
interface Optional {
  readonly title: string;
  readonly cell: (peer: NetworkPeer, now: Date) => string;
}

const priority: Optional = {
  title: 'priority',
  cell: (peer) => (peer.peer_type === 'connector' ? String(peer.priority ?? 0) : '-'),
};
const state: Optional = { title: 'state', cell: stateOf };
const until: Optional = { title: 'until', cell: ({ expires_at }) => expires_at ?? '-' };

/**
 * The peers of a network, a row each, as an administrator sees them; with priorities where a connector has one, and with states and
 * ends where a peer is suspended or expires.
 */
export function peerTable(peers: readonly NetworkPeer[], now = new Date()): string {
  const isRanked = peers.some((peer) => peer.priority !== undefined && peer.priority !== 0);
  const isOut = peers.some((peer) => stateOf(peer, now) !== '-');
  const isTimed = peers.some((peer) => peer.expires_at !== undefined);
  const columns = [...(isRanked ? [priority] : []), ...(isOut ? [state] : []), ...(isTimed ? [until] : [])];
  return table(
    ['peer', 'name', 'type', ...columns.map(({ title }) => title), 'address', 'endpoint', 'public key'],
    peers.map((peer) => [
      String(peer.id),
      peer.name,
      peer.peer_type,
      ...columns.map(({ cell }) => cell(peer, now)),
      peer.address,
      peer.endpoint ?? '-',
      peer.public_key,
    ]),
  );
}

function stateOf({ suspended_at, expires_at }: NetworkPeer, now: Date): string {
  if (suspended_at !== undefined) return 'suspended';
  return expires_at !== undefined && Date.parse(expires_at) <= now.getTime() ? 'expired' : '-';
}
