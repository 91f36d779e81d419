import type { Health } from '../contract/health.ts';
import { addSamples, type RateSamples } from './logic/network/rates.ts';

/** The rates per network since this page was loaded. */
const seen = new Map<number, RateSamples>();
const added = new WeakMap<Health, RateSamples>();

/** The rates of a network's hosts, up to this report. */
export function useRates(network: number, health: Health): RateSamples {
  const known = added.get(health);
  if (known !== undefined) return known;
  const rates = addSamples(seen.get(network) ?? new Map(), health);
  seen.set(network, rates);
  added.set(health, rates);
  return rates;
}
