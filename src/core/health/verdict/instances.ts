/** A peer's daemon starts by random id, as its requests show them. On one host, none overlap. */
export interface Instances {
  readonly current: Instance;
  /** Earlier starts, newest first. */
  readonly previous: readonly Instance[];
  /** When an earlier start first and last returned, in milliseconds; absent if none did. */
  readonly returned?: { readonly first: number; readonly last: number };
}

export interface Instance {
  readonly id: string;
  /** When it replaced another start, in milliseconds. */
  readonly since: number;
  /** The source address of its requests; absent if it is not recorded. */
  readonly address?: string;
}

/** The number of earlier starts that are recorded. A host has few copies. */
const mostFormer = 7;

/** Milliseconds in which a request of an earlier start may arrive, such as a proxy's retry. */
const lateMs = 30_000;

/** Milliseconds after the last return until a host counts as having no copy. */
const episodeMs = 10 * 60_000;

/** Milliseconds between two events about copies of a host. */
const quietMs = 60 * 60_000;

export interface InstanceUpdate {
  /** The same object if nothing changed. */
  readonly instances: Instances;
  /** True if copies of the host are found after a time without copies. */
  readonly begins: boolean;
}

/**
 * Records a request. A restart gets a new id. If an earlier id returns, two hosts have the identity
 * of the peer: a disk, an image or a folder was copied. `since` is in milliseconds.
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

/** Limits all instants to `now`. A later instant came from a clock that was ahead. */
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

/** Since when a peer has copies, in milliseconds; null if it has none. */
export function findCloned(known: Instances | null, now: number): number | null {
  const { returned } = known ?? {};
  return returned !== undefined && now - returned.last < episodeMs ? returned.first : null;
}
