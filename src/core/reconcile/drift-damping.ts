import type { Actual } from '../host-state/actual.ts';
import { isForwardingKey } from '../host-state/sysctl-keys.ts';
import { placeRoutes } from '../routing/place-route.ts';
import type { Change } from './change.ts';
import type { Desired } from './desired.ts';

/** When each thing was repaired lately, in seconds of a clock that never jumps; by its kind and target. */
export type Repairs = ReadonlyMap<string, readonly number[]>;

/** Seconds for which a repair is remembered. */
const memory = 600;
/** Repairs of one thing that are made without a delay; further ones back off. */
const free = 3;
/** Seconds, the longest pause between two repairs of the same. */
const longestPause = 60;

/** What keeps being undone. */
export interface RecurringDrift {
  readonly what: string;
  /** Repairs within the last ten minutes. */
  readonly repairs: number;
  /** Seconds between the next repairs; 0 for what never waits. */
  readonly pause: number;
}

/** The repairs with these changes made just now. */
export function noteRepairs(repairs: Repairs, changes: readonly Change[], now: number): Repairs {
  const noted = new Map([...repairs].flatMap(([name, times]) => recent(name, times, now)));
  for (const change of changes) noted.set(nameOf(change), [...(noted.get(nameOf(change)) ?? []), now]);
  return noted;
}

/**
 * Seconds for which a repair should wait: none for drift that is new, else a pause that doubles with each repair of the same.
 * One new thing among old ones is repaired at once, and the old ones with it. What protects this host and its networks never waits,
 * however often it is undone: meanwhile packets would pass that must not.
 */
export function pauseBefore(repairs: Repairs, changes: readonly Change[], now: number): number {
  if (changes.some(isProtective)) return 0;
  const pauses = changes.map((change) => {
    const times = repairs.get(nameOf(change)) ?? [];
    return Math.max(0, (times.at(-1) ?? now) + pauseAfter(times.length) - now);
  });
  return pauses.length === 0 ? 0 : Math.min(...pauses);
}

/** Everything that was repaired so often that its repairs are spaced out, or would be if it did not protect the host. */
export function findRecurringDrift(repairs: Repairs, now: number): RecurringDrift[] {
  return [...repairs]
    .flatMap(([name, times]) => recent(name, times, now))
    .filter(([, times]) => pauseAfter(times.length) > 0)
    .map(([what, times]) => ({
      ...{ what, repairs: times.length },
      pause: what.startsWith(packetRules) ? 0 : pauseAfter(times.length),
    }));
}

const packetRules = 'firewall ';

/** True of packet rules, and of forwarding that is turned off: what no pause may hold up. */
export function isProtective({ kind, target, after }: Change): boolean {
  return kind === 'firewall' || (kind === 'sysctl' && isForwardingKey(target) && after === '0');
}

function pauseAfter(repairs: number): number {
  return repairs < free ? 0 : Math.min(longestPause, 2 ** (repairs - free));
}

function recent(name: string, times: readonly number[], now: number): [string, readonly number[]][] {
  const kept = times.filter((time) => now - time < memory);
  return kept.length === 0 ? [] : [[name, kept]];
}

/** An interface has several settings, each of which may be changed by another program. */
function nameOf({ kind, target, after }: Change): string {
  const settings = kind === 'interface' && typeof after === 'object' && after !== null ? Object.keys(after) : [];
  return [kind, target, ...settings].join(' ');
}

/** What a pass over a network works towards, and the host around it. */
export interface Aimed {
  readonly desired: Desired;
  readonly actual: Pick<Actual, 'rules' | 'routes' | 'underlay'>;
}

/**
 * True when two passes work towards the same: then what the later one finds to do was undone by others. Otherwise it may follow from
 * the map, or from what is around the tunnel.
 */
export function haveSameAim(one: Aimed, other: Aimed): boolean {
  return one === other || describeAim(one) === describeAim(other);
}

function describeAim({ desired, actual }: Aimed): string {
  const { config, routes, rules, firewall, ingress, sysctls, hosts } = desired;
  const places = routes.map(placeRoutes(desired, actual));
  return JSON.stringify([config, routes, places, rules, firewall, ingress.map(({ link }) => link), sysctls, hosts]);
}
