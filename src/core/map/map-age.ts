import type { NetworkMap } from './model.ts';

/** A host and its map's last confirmation: milliseconds since 1970 by the service's clock. */
interface Confirmed {
  readonly membership: { readonly map: Pick<NetworkMap, 'maxAge'> };
  readonly confirmed?: number | undefined;
}

/** A newer confirmation is saved after this fraction of the map's maximum age: 1/16. */
const savedPart = 16;
/** Milliseconds by which the clock of a service may go back and still count as the same clock. */
const tolerance = 5000;

/** Returns the end of the map's validity without another confirmation; null without an end. */
export function findMapEnd({ membership, confirmed = 0 }: Confirmed): number | null {
  const { maxAge } = membership.map;
  return maxAge === undefined ? null : confirmed + maxAge * 1000;
}

/** True if a confirmation must be saved. Not all are saved, because a save writes to the disk. */
export function isConfirmationDue({ membership, confirmed }: Confirmed, at: number): boolean {
  const { maxAge } = membership.map;
  if (maxAge === undefined) return false;
  return confirmed === undefined || at - confirmed >= (maxAge * 1000) / savedPart || at < confirmed - tolerance;
}

/** A connector's map that is out of date, or soon will be. Times are in ISO 8601. */
export interface MapAge {
  readonly isOver: boolean;
  readonly confirmedAt: string;
  readonly endsAt: string;
}

/** Returns the map's age after half of its maximum age. Null before, and without a maximum. */
export function findMapAge(host: Confirmed, now: number): MapAge | null {
  const until = findMapEnd(host);
  const { maxAge = 0 } = host.membership.map;
  if (until === null || until - now > maxAge * 500) return null;
  const [confirmedAt, endsAt] = [host.confirmed ?? 0, until].map((at) => new Date(at).toISOString());
  return { isOver: until <= now, confirmedAt: confirmedAt as string, endsAt: endsAt as string };
}
