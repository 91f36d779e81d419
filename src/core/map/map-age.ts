import type { NetworkMap } from './model.ts';

/** A host, with when the service last confirmed its map, in milliseconds since 1970 by the clock of the service. */
interface Confirmed {
  readonly membership: { readonly map: Pick<NetworkMap, 'maxAge'> };
  readonly confirmed?: number | undefined;
}

/** Of the longest age of a map, the part after which a newer confirmation is saved. */
const savedPart = 16;
/** Milliseconds by which the clock of a service may go back without being another clock. */
const tolerance = 5000;

/** Until when a host's map is valid without another confirmation; null where it is so for good. */
export function findMapEnd({ membership, confirmed = 0 }: Confirmed): number | null {
  const { maxAge } = membership.map;
  return maxAge === undefined ? null : confirmed + maxAge * 1000;
}

/** True for a confirmation that is to be saved: not each of them, because a save is a write to the disk. */
export function isConfirmationDue({ membership, confirmed }: Confirmed, at: number): boolean {
  const { maxAge } = membership.map;
  if (maxAge === undefined) return false;
  return confirmed === undefined || at - confirmed >= (maxAge * 1000) / savedPart || at < confirmed - tolerance;
}

/** That a connector's map is out of date, or soon is. */
export interface MapAgeWarning {
  readonly isOver: boolean;
  readonly found: string;
}

/** Describes the map of a connector from half of its longest age on; null before, and where it has none. */
export function describeMapAge(host: Confirmed, now: number): MapAgeWarning | null {
  const until = findMapEnd(host);
  const { maxAge = 0 } = host.membership.map;
  if (until === null || until - now > maxAge * 500) return null;
  const since = `the control plane last confirmed the map at ${new Date(host.confirmed ?? 0).toISOString()}`;
  const isOver = until <= now;
  const effect = isOver
    ? 'this connector relays and serves nothing until it confirms it again'
    : `without another confirmation this connector relays and serves nothing from ${new Date(until).toISOString()} on`;
  return { isOver, found: `${since}; ${effect}` };
}
