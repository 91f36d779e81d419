import type { JSX } from 'preact';
import type { Health } from '../../../contract/health.ts';
import { addSamples, type RateSamples, type Sample, toPoints } from '../../logic/network/rates.ts';
import { formatRate } from '../../logic/text/format.ts';

interface SparklineProps {
  readonly samples: readonly Sample[];
  readonly of: 'received' | 'sent';
}

const [width, height] = [120, 24];

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

/** The last rate as a number, and the rates since the page was loaded as a line. */
export function Sparkline({ samples, of }: SparklineProps): JSX.Element {
  const values = samples.map((sample) => sample[of]);
  const points = toPoints(values, width, height);
  return (
    <span class="spark">
      <svg viewBox={`0 -2 ${width} ${height + 4}`} preserveAspectRatio="none" aria-hidden="true">
        <polygon points={`0,${height} ${points} ${width},${height}`} />
        <polyline points={points} />
      </svg>
      {formatRate(values.at(-1) ?? 0)}
    </span>
  );
}
