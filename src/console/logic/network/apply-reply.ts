import type { Event } from '../../../contract/event.ts';
import type { Network, NetworkDelta, NetworkReading } from '../../../contract/network.ts';

interface Reply {
  readonly status: number;
  readonly headers: Pick<Headers, 'has'>;
}

/**
 * Changes have a `base`, because a proxy may turn a 226 into a 200. Null if the whole network must
 * be read: the changes are for another revision, or the reply may be partial.
 */
export function readNetwork(
  { status, headers }: Reply,
  data: Network | NetworkReading | NetworkDelta,
  before: Network | null,
): Network | null {
  if ('base' in data) return before !== null && data.base === before.etag ? applyDelta(before, data) : null;
  const { removed, ...network } = data as NetworkReading;
  // A control plane of an earlier version sends changes without a base.
  if (status === 226) return before && applyDelta(before, { ...network, removed: removed ?? [] });
  const isWhole = !headers.has('im') && !headers.has('delta-base') && !isPartial(network, removed, before);
  return isWhole ? network : null;
}

/**
 * True for changes of an earlier version whose status a proxy hides. They always have `removed`.
 */
function isPartial({ peers }: Network, removed: readonly number[] | undefined, before: Network | null): boolean {
  if (removed === undefined || before === null) return false;
  const stated = new Set([...removed, ...peers.map(({ id }) => id)]);
  return !before.peers.every(({ id }) => stated.has(id));
}

function applyDelta(
  before: Network,
  { base: _, removed, peers: changed, messages: __, rules, ...summary }: Omit<NetworkDelta, 'base'> & { base?: string },
): Network {
  const gone = new Set(removed);
  const byId = new Map(before.peers.map((peer) => [peer.id, peer]));
  for (const peer of changed) byId.set(peer.id, peer);
  const peers = [...byId.values()].filter(({ id }) => !gone.has(id)).sort((a, b) => a.id - b.id);
  // The list of rules is absent if it is unchanged.
  const list = rules?.rules ?? before.rules?.rules ?? [];
  return { ...summary, ...(rules && { rules: { ...rules, rules: list } }), peers };
}

/** The maximum on a page. The control plane keeps more. */
export const mostEvents = 1000;

export function mergeEvents(before: readonly Event[], came: readonly Event[]): readonly Event[] {
  const [first] = came;
  if (first === undefined) return before;
  // A restored database counts from a lower id, and sends its newest events.
  const isOther = first.id <= (before.at(-1)?.id ?? 0);
  return (isOther ? came : [...before, ...came]).slice(-mostEvents);
}
