/** The starts of a peer's daemon that made requests, each known by a random id. Of one host each start ends before the next one. */
export interface Instances {
  readonly current: Instance;
  /** Earlier ones, the newest first. */
  readonly previous: readonly Instance[];
  /** When an earlier one came back first and last, in milliseconds; absent where none did. */
  readonly returned?: { readonly first: number; readonly last: number };
}

/** A start of a daemon. */
export interface Instance {
  readonly id: string;
  /** When it took the place of another one, in milliseconds. */
  readonly since: number;
  /** Where its requests come from; absent where that is not kept. */
  readonly address?: string;
}

/** Earlier starts that are remembered. Copies of a host are few. */
const mostFormer = 7;

/** Milliseconds in which a request of an earlier start may still arrive, such as one that a proxy repeats. */
const lateMs = 30_000;

/** Milliseconds since the last return after which a host has no copy any more. */
const episodeMs = 10 * 60_000;

/** Milliseconds between two events about copies of a host. */
const quietMs = 60 * 60_000;

/** What follows from a request. */
export interface InstanceUpdate {
  /** The same object where nothing is new. */
  readonly instances: Instances;
  /** True where copies of the host are found after a time without. */
  readonly begins: boolean;
}

/**
 * Adds a request. A restart has a new id and never returns to an earlier one. So where an earlier one comes back, two hosts have the
 * identity of the peer: a disk, an image or a folder was copied.
 *
 * @param since in milliseconds
 */
export function observeInstance(known: Instances | null, { id, since, address }: Instance): InstanceUpdate {
  const next: Instance = { id, since, ...(address !== undefined && { address }) };
  if (known === null) return { instances: { current: next, previous: [] }, begins: false };
  const { current, previous, returned } = known;
  if (id === current.id) return { instances: known, begins: false };
  const isReturn = previous.some((each) => each.id === id);
  if (isReturn && since - current.since < lateMs) return { instances: known, begins: false };
  const others = [current, ...previous.filter((each) => each.id !== id)].slice(0, mostFormer);
  if (!isReturn) return { instances: { ...known, current: next, previous: others }, begins: false };
  const isSame = returned !== undefined && since - returned.last < quietMs;
  const first = isSame ? returned.first : since;
  return { instances: { current: next, previous: others, returned: { first, last: since } }, begins: !isSame };
}

/** The same with no instant later than `now`: one that is was written by a clock that was ahead. */
export function clampInstances(known: Instances, now: number): Instances {
  const { current, previous, returned } = known;
  const isClean = [current, ...previous].every(({ since }) => since <= now) && (returned?.last ?? now) <= now;
  if (isClean) return known;
  const clamp = (instance: Instance) => ({ ...instance, since: Math.min(instance.since, now) });
  return {
    current: clamp(current),
    previous: previous.map(clamp),
    ...(returned && { returned: { first: Math.min(returned.first, now), last: Math.min(returned.last, now) } }),
  };
}

/** Since when a peer has copies, in milliseconds; null where it has none. */
export function findCloned(known: Instances | null, now: number): number | null {
  const { returned } = known ?? {};
  return returned !== undefined && now - returned.last < episodeMs ? returned.first : null;
}
