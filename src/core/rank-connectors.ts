import { comparePeerIds, type Failure, type Peer } from './model.ts';

/** Healthy connectors first, then those with an endpoint, then the lowest id: the same order on every host that sees the same. */
export function rankConnectors(failed: readonly Failure[]) {
  const failures = new Map(failed.map((each) => [each.peer, each]));
  const isSilent = ({ id }: Peer) => failures.get(id)?.back === false;
  const health = (peer: Peer) => (isSilent(peer) ? 4 : failures.has(peer.id) ? 2 : 0);
  const rank = (peer: Peer) => health(peer) + (peer.endpoint === null ? 1 : 0);
  const compare = (a: Peer, b: Peer) => rank(a) - rank(b) || comparePeerIds(a.id, b.id);
  return { isSilent, compare };
}
