import type { Actual } from '../host-state/actual.ts';
import { timeoutsOf } from './deadline-rules.ts';
import { isLoaded } from './own-table.ts';
import type { Firewall } from './packet-rule.ts';

/**
 * Seconds by which timeouts may differ. The time of the service is derived from replies, in whole
 * seconds.
 */
const tolerance = 5;

/**
 * Returns the observed marks of our table, with an additional mark for each element whose timeout
 * differs from its rule. A saved ruleset restores each timeout as it was when it was saved. Returns
 * the same list if no timeout differs.
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
