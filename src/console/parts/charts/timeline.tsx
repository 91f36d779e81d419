import type { JSX } from 'preact';
import type { TimeLine } from '../../logic/events/failovers.ts';
import { Time } from '../time.tsx';

const [laneHeight, barHeight] = [46, 22];

export function Timeline({ line }: { readonly line: TimeLine }): JSX.Element {
  const height = line.lanes.length * laneHeight;
  return (
    <figure class="timeline">
      <svg
        width="100%"
        height={height}
        role="img"
        aria-label="Connectors of each route over time; the events are listed below"
      >
        {line.lanes.map(({ route, segments }, lane) => (
          <g key={route}>
            <text x="0" y={lane * laneHeight + 14}>
              {route}
            </text>
            {segments.map(({ start, end, connector }) => (
              <svg
                key={start}
                x={percent(start)}
                y={lane * laneHeight + 19}
                width={percent(Math.max(0.002, end - start))}
                height={barHeight}
              >
                <title>{connector ?? 'dead'}</title>
                <rect class={connector === null ? 'dead' : 'served'} width="100%" height={barHeight} />
                <text class={connector === null ? 'dead' : ''} x="6" y="16">
                  {connector ?? '✕ dead'}
                </text>
              </svg>
            ))}
          </g>
        ))}
      </svg>
      <figcaption>
        <Time at={new Date(line.start).toISOString()} />
        <span>now</span>
      </figcaption>
    </figure>
  );
}

const percent = (part: number) => `${Math.round(part * 10_000) / 100}%`;
