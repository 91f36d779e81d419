import type { JSX } from 'preact';
import type { PeerState } from '../../contract/health.ts';
import { cellShapes } from '../logic/matrix/cells.ts';
import type { CellState } from '../logic/matrix/reach.ts';

interface StateProps {
  readonly state: CellState;
  readonly count?: number;
  /** A text instead of the state's name. */
  readonly text?: string;
}

/** The state of a path as shape and word. */
export function State({ state, count, text = state }: StateProps): JSX.Element {
  return (
    <span class="state">
      <svg class="mark" viewBox="0 0 16 16" aria-hidden="true">
        <path class={`cell ${state}`} d={cellShapes[state]} />
      </svg>
      {count === undefined ? text : `${text} ${count}`}
    </span>
  );
}

const shapes: Readonly<Record<PeerState | 'up' | 'dead', CellState>> = {
  online: 'direct',
  up: 'direct',
  offline: 'down',
  dead: 'down',
  unknown: 'unknown',
};

/** The state of a peer or a route, with the same shapes. */
export function Verdict({ state }: { readonly state: keyof typeof shapes }): JSX.Element {
  const shape = shapes[state];
  return (
    <span class="state">
      <svg class="mark" viewBox="0 0 16 16" aria-hidden="true">
        <path class={`cell ${shape}`} d={cellShapes[shape]} />
      </svg>
      {state}
    </span>
  );
}
