import type { PeerPath } from '../../../contract/health.ts';
import type { Peer } from '../../../contract/peer.ts';
import type { Reach } from './reach.ts';

/** How two peers reach each other. */
export interface PeerPair {
  readonly other: Peer;
  readonly from: PeerPath | undefined;
  readonly to: PeerPath | undefined;
  /** The last report of this peer, if it is offline. */
  readonly last: PeerPath | undefined;
}

const order: readonly (string | undefined)[] = ['down', 'never', 'stale', 'direct', 'relayed'];

/** The peers with a reported path to or from this peer. Peers that do not answer come first. */
export function listAround(reach: Reach, peer: number): readonly PeerPair[] {
  const pairs = [...reach.byId.values()].flatMap((other): PeerPair[] => {
    if (other.id === peer) return [];
    const [from, to] = [reach.pathOf(peer, other.id), reach.pathOf(other.id, peer)];
    const last = reach.lastPathOf(peer, other.id);
    return (from ?? to ?? last) === undefined ? [] : [{ other, from, to, last }];
  });
  const rank = ({ from, to }: PeerPair) =>
    Math.min(...[from, to].flatMap((path) => (path === undefined ? [] : order.indexOf(path.path))));
  return pairs.toSorted((one, other) => rank(one) - rank(other) || one.other.id - other.other.id);
}
