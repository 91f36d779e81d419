import type { JSX } from 'preact';
import type { TrafficSeries } from '../../../contract/traffic.ts';
import { highestOf, layOutRates } from '../../logic/network/rates.ts';
import { formatRate } from '../../logic/text/format.ts';

const [width, height] = [480, 96];

export function TrafficChart({ received, sent }: TrafficSeries): JSX.Element {
  const most = highestOf(received, sent);
  const lines = [
    { name: 'received', ...layOutRates(received, most, width, height) },
    { name: 'sent', ...layOutRates(sent, most, width, height) },
  ];
  const text = lines.map(({ name, most, mean }) => `${name}: mean ${formatRate(mean)}, highest ${formatRate(most)}`);
  return (
    <figure class="chart">
      <svg viewBox={`0 -2 ${width} ${height + 4}`} preserveAspectRatio="none" role="img" aria-label={text.join('; ')}>
        {lines.map(({ name, points }) => (
          <polyline key={name} class={name} points={points} />
        ))}
      </svg>
      <figcaption>
        <span>24 h ago</span>
        {lines.map(({ name, most, mean }) => (
          <span key={name}>
            <svg class="key" viewBox="0 0 24 8" aria-hidden="true">
              <path class={name} d="M0 4H24" />
            </svg>
            {name}: mean {formatRate(mean)}, highest {formatRate(most)}
          </span>
        ))}
        <span>now</span>
      </figcaption>
    </figure>
  );
}

/** One line of the chart, for a table. */
export function TrafficLine({
  rates,
  most,
}: {
  readonly rates: readonly number[];
  readonly most: number;
}): JSX.Element {
  const [small, low] = [120, 24];
  const { points, mean } = layOutRates(rates, most, small, low);
  return (
    <span class="spark">
      <svg viewBox={`0 -2 ${small} ${low + 4}`} preserveAspectRatio="none" aria-hidden="true">
        <polygon points={`0,${low} ${points} ${small},${low}`} />
        <polyline points={points} />
      </svg>
      {formatRate(mean)}
    </span>
  );
}
