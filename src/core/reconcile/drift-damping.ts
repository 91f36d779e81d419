import type { Actual } from '../host-state/actual.ts';
import { isForwardingKey } from '../host-state/sysctl-keys.ts';
import { placeRoutes } from '../routing/place-route.ts';
import type { Change } from './change.ts';
import type { Desired } from './desired.ts';

/** The recent repairs by kind and target, in seconds of a monotonic clock. */
export type Repairs = ReadonlyMap<string, readonly number[]>;

/** Seconds for which a repair is kept. */
const memory = 600;
/** Repairs of the same target without a delay. Further repairs back off. */
const free = 3;
/** Seconds of the longest pause between two repairs of the same target. */
const longestPause = 60;

/** A target that another program keeps reverting. */
export interface RecurringDrift {
  readonly what: string;
  /** Repairs within the last ten minutes. */
  readonly repairs: number;
  /** Seconds to wait before the next repair; 0 for a repair that never waits. */
  readonly pause: number;
}

/** Adds these changes as repairs made now. */
export function noteRepairs(repairs: Repairs, changes: readonly Change[], now: number): Repairs {
  const noted = new Map([...repairs].flatMap(([name, times]) => recent(name, times, now)));
  for (const change of changes) noted.set(nameOf(change), [...(noted.get(nameOf(change)) ?? []), now]);
  return noted;
}

/**
 * Seconds for which a repair must wait: 0 for new drift, else doubling with each repair of the same
 * target. If any drift is new, everything is repaired immediately. Changes that protect this host
 * and its networks never wait: packets would pass that must not.
 */
export function pauseBefore(repairs: Repairs, changes: readonly Change[], now: number): number {
  if (changes.some(isProtective)) return 0;
  const pauses = changes.map((change) => {
    const times = repairs.get(nameOf(change)) ?? [];
    return Math.max(0, (times.at(-1) ?? now) + pauseAfter(times.length) - now);
  });
  return pauses.length === 0 ? 0 : Math.min(...pauses);
}

/** Returns the targets whose repairs back off, or would if they did not protect the host. */
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

/** True for packet rules, and for forwarding that is turned off: no pause may delay them. */
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

/**
 * Names the setting, not only the interface: another program may change one setting and leave the
 * others.
 */
function nameOf({ kind, target, after }: Change): string {
  const settings = kind === 'interface' && typeof after === 'object' && after !== null ? Object.keys(after) : [];
  return [kind, target, ...settings].join(' ');
}

/** The desired state of a pass over a network, and the host's observed state. */
export interface Aimed {
  readonly desired: Desired;
  readonly actual: Pick<Actual, 'rules' | 'routes' | 'underlay'>;
}

/** True for equal desired states. Otherwise drift may come from the map or the underlay. */
export function haveSameAim(one: Aimed, other: Aimed): boolean {
  return one === other || describeAim(one) === describeAim(other);
}

function describeAim({ desired, actual }: Aimed): string {
  const { config, routes, rules, firewall, ingress, sysctls, hosts, dns } = desired;
  const places = routes.map(placeRoutes(desired, actual));
  const links = ingress.map(({ link }) => link);
  return JSON.stringify([config, routes, places, rules, firewall, links, sysctls, hosts, dns]);
}
