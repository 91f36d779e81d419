import type { Actual } from '../host-state/actual.ts';
import { timeoutsOf } from './deadline-rules.ts';
import { isLoaded } from './own-table.ts';
import type { Firewall } from './packet-rule.ts';

/** Seconds by which timeouts may differ: the time of the service follows from replies, in whole seconds. */
const tolerance = 5;

/**
 * What is observed of our table, with a mark where elements end at another time than their rules say: a saved ruleset that is loaded
 * again restores each timeout as it was when it was saved. The same list where none does.
 *
 * @param now milliseconds since 1970 by the clock of the service
 */
export function markOtherTimeouts(firewall: Firewall | null, actual: Actual, now: number): Actual['firewall'] {
  if (firewall === null || actual.firewall === null || !isLoaded(firewall, actual)) return actual.firewall;
  const { timeouts = {} } = actual;
  const wanted = timeoutsOf(firewall.link, firewall.rules, now);
  const isOther = (name: string) => Math.abs((timeouts[name] ?? 0) - (wanted.get(name) ?? 0)) > tolerance;
  const others = [...new Set([...wanted.keys(), ...Object.keys(timeouts)])].filter(isOther);
  return others.length === 0 ? actual.firewall : [...actual.firewall, ...others.map((name) => `(timeout of ${name})`)];
}
