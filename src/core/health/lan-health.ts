import type { PrefixMap } from '../map/prefix-maps.ts';
import { type Address, covers, lengthOf, type Prefix } from '../net/cidr.ts';

/** Consecutive rounds that change the verdict. */
const requiredRounds = 3;

/** The result of one round for a probe target. */
export interface Probe {
  /** The target as `formatProbeTarget` writes it. */
  readonly target: string;
  /** Null while the target's name is unresolved: it may then be behind any route. */
  readonly address: Address | null;
  /** Null if the target could not be probed. */
  readonly isGood: boolean | null;
}

/** The health of the LANs behind a connector's routes. */
export interface LanHealth {
  /** The number of consecutive rounds in which a target was good or, as a negative number, bad. */
  readonly streaks: ReadonlyMap<string, number>;
  /** The routes behind which no target answers, in the order of the routes. */
  readonly dead: readonly Prefix[];
}

/** The health before the first probe: healthy, except for routes that were dead before. */
export function initialLanHealth(dead: readonly Prefix[] = []): LanHealth {
  return { streaks: new Map(), dead };
}

/**
 * Adds a round of probes. A route is dead once all targets behind it were bad in three consecutive
 * rounds. It is alive again once any target was good in three consecutive rounds. A route without
 * targets is alive. Exception: it stays dead while an unresolved target may be behind it.
 */
export function trackLanHealth(before: LanHealth, round: readonly Probe[], served: readonly PrefixMap[]): LanHealth {
  const streaks = new Map(
    round.map(({ target, isGood }) => [target, extend(before.streaks.get(target) ?? 0, isGood)] as const),
  );
  const isDead = (route: Prefix) => {
    const behind = round.filter(({ address }) => address !== null && findRouteTo(address, served) === route);
    const streaksBehind = behind.map(({ target }) => streaks.get(target) ?? 0);
    const wasDead = before.dead.includes(route);
    if (behind.length === 0) return wasDead && round.some(({ address }) => address === null);
    return wasDead
      ? !streaksBehind.some((streak) => streak >= requiredRounds)
      : streaksBehind.every((each) => each <= -requiredRounds);
  };
  return { streaks, dead: served.map(({ route }) => route).filter(isDead) };
}

/** The route that leads to an address behind this host, by the most specific prefix, or null. */
export function findRouteTo(address: Address, served: readonly PrefixMap[]): Prefix | null {
  const [found] = served
    .filter(({ local }) => covers(local, address))
    .toSorted((one, other) => lengthOf(other.local) - lengthOf(one.local));
  return found?.route ?? null;
}

function extend(streak: number, isGood: boolean | null): number {
  if (isGood === null) return streak;
  return isGood ? Math.max(streak, 0) + 1 : Math.min(streak, 0) - 1;
}
