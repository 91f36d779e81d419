import type { JSX } from 'preact';
import { type Sample, toPoints } from '../../logic/network/rates.ts';
import { formatRate } from '../../logic/text/units.ts';

interface SparklineProps {
  readonly samples: readonly Sample[];
  readonly of: 'received' | 'sent';
}

const [width, height] = [120, 24];

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
