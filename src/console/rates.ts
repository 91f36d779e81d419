import type { Health } from '../contract/health.ts';
import { addSamples, type Rates } from './logic/network/rates.ts';

/** The rates of each network that this page has seen since it was loaded. */
const seen = new Map<number, Rates>();
const added = new WeakMap<Health, Rates>();

/** The rates of the hosts of a network, up to this report. */
export function useRates(network: number, health: Health): Rates {
  const known = added.get(health);
  if (known !== undefined) return known;
  const rates = addSamples(seen.get(network) ?? new Map(), health);
  seen.set(network, rates);
  added.set(health, rates);
  return rates;
}
