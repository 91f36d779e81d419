import { type Address, covers, lengthOf, type Prefix } from '../net/cidr.ts';

/** Rounds in a row that a change of mind takes. */
const requiredRounds = 3;

/** What one round showed of a probe target. */
export interface Probe {
  /** The target as `formatProbeTarget` writes it. */
  readonly target: string;
  /** Where it is; null while its name has no address, and it may be behind any route. */
  readonly address: Address | null;
  /** Null where it could not be asked. */
  readonly isGood: boolean | null;
}

/** How the LANs behind a connector's routes are. */
export interface LanHealth {
  /** How many rounds in a row each target was good or, below zero, how many it was bad. */
  readonly streaks: ReadonlyMap<string, number>;
  /** The routes behind which no target answers, in the order of the routes. */
  readonly dead: readonly Prefix[];
}

/** The health before the first probe: healthy, except for routes that were dead before. */
export function initialLanHealth(dead: readonly Prefix[] = []): LanHealth {
  return { streaks: new Map(), dead };
}

/**
 * Takes one more round into account. A route is dead once every target behind it was bad three rounds in a row, and alive again
 * once one of them was good three rounds in a row. One without targets is alive; only where it was dead before, and
 * a target may be behind it whose address is not known, it stays so.
 */
export function trackLanHealth(before: LanHealth, round: readonly Probe[], routes: readonly Prefix[]): LanHealth {
  const streaks = new Map(
    round.map(({ target, isGood }) => [target, extend(before.streaks.get(target) ?? 0, isGood)] as const),
  );
  const isDead = (route: Prefix) => {
    const behind = round.filter(({ address }) => address !== null && findRouteTo(address, routes) === route);
    const streaksBehind = behind.map(({ target }) => streaks.get(target) ?? 0);
    const wasDead = before.dead.includes(route);
    if (behind.length === 0) return wasDead && round.some(({ address }) => address === null);
    return wasDead
      ? !streaksBehind.some((streak) => streak >= requiredRounds)
      : streaksBehind.every((each) => each <= -requiredRounds);
  };
  return { streaks, dead: routes.filter(isDead) };
}

/** The route by which packets to `address` go: the most specific one that holds it, or null. */
export function findRouteTo(address: Address, routes: readonly Prefix[]): Prefix | null {
  const [found = null] = routes
    .filter((route) => covers(route, address))
    .toSorted((one, other) => lengthOf(other) - lengthOf(one));
  return found;
}

function extend(streak: number, isGood: boolean | null): number {
  if (isGood === null) return streak;
  return isGood ? Math.max(streak, 0) + 1 : Math.min(streak, 0) - 1;
}
