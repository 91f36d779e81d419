import type { PeerPath } from '../../../contract/health.ts';
import type { Peer } from '../../../contract/peer.ts';
import type { Reach } from './reach.ts';

/** How a peer and another see each other. */
export interface PeerPair {
  readonly other: Peer;
  readonly from: PeerPath | undefined;
  readonly to: PeerPath | undefined;
  /** What this peer reported last, where it is offline. */
  readonly last: PeerPath | undefined;
}

const order: readonly (string | undefined)[] = ['down', 'never', 'stale', 'direct', 'relayed'];

/** The peers between which and this one a path is reported; those that do not answer first. */
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
