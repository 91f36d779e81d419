import { comparePeerIds, type Failure, type Peer } from './model.ts';

/**
 * Healthy connectors first, then the highest priority, then the one that has served longest, then the lowest id: the same order on every
 * host that sees the same. A newcomer comes last, with an endpoint or without, so that it takes nothing from one that serves.
 */
export function rankConnectors(failed: readonly Failure[]) {
  const failures = new Map(failed.map((each) => [each.peer, each]));
  const isSilent = ({ id }: Peer) => failures.get(id)?.back === false;
  const illness = (peer: Peer) => (isSilent(peer) ? 2 : failures.has(peer.id) ? 1 : 0);
  const compare = (a: Peer, b: Peer) =>
    illness(a) - illness(b) ||
    (b.priority ?? 0) - (a.priority ?? 0) ||
    servingSince(a) - servingSince(b) ||
    comparePeerIds(a.id, b.id);
  return { isSilent, compare };
}

/** One of which the service says nothing comes after those of which it does. */
function servingSince({ servingSince = Number.MAX_SAFE_INTEGER }: Peer): number {
  return servingSince;
}
