import type { NewEvent } from '../service/append-events.ts';
import type { Context } from '../service/context.ts';
import type { AttemptCounts } from '../service/peer-change-limit.ts';
import { listPeersAmong } from '../store/peers/peer-lists.ts';
import type { Pair } from './pair.ts';
import type { Round } from './round.ts';

/**
 * Returns the events of pairs whose path is another than in their last event, and notes them in the
 * pairs. An event beyond the limits waits until a host of the pair makes its next statement.
 */
export async function announcePaths(
  { pathEventLimit, pairEventLimit }: Pick<Context, 'pathEventLimit' | 'pairEventLimit'>,
  round: Round,
  counts: AttemptCounts,
): Promise<NewEvent[]> {
  const { id: network, relay } = round.network;
  const changed = round.pairs.filter(({ a, b, state, data }) => {
    if ((state === 'direct') === (data.isAnnounced ?? false)) return false;
    const key = `${a} ${b}`;
    if (!pathEventLimit.hasRoom(network) || !pairEventLimit.hasRoom(key)) return false;
    counts.add(pathEventLimit.take(network, true));
    counts.add(pairEventLimit.take(key, true));
    return true;
  });
  if (changed.length === 0) return [];
  const ids = new Set([...changed.flatMap(({ a, b }) => [a, b]), ...(relay === null ? [] : [relay])]);
  const peers = await listPeersAmong(round.db, network, { ids: [...ids], withOwnRoutes: false });
  const names = new Map(peers.map(({ id, name }) => [id, { id, name }]));
  return changed.map((pair) => {
    const isAnnounced = pair.state === 'direct';
    round.set({ ...pair, data: { ...pair.data, isAnnounced } });
    const details = isAnnounced ? { path: 'direct' } : { path: 'relayed', ...describeEnd(pair, names.get(relay ?? 0)) };
    return { type: 'path.changed', peer: names.get(pair.a) ?? null, details: { with: names.get(pair.b), ...details } };
  });
}

function describeEnd({ data: { ended } }: Pair, via: { readonly id: number; readonly name: string } | undefined) {
  return { ...(via && { via }), ...(ended && { why: ended }) };
}
