import type { JSX } from 'preact';
import type { RuleDecision } from '../../../contract/rules.ts';
import {
  type AccessState,
  accessShapes,
  describeTrafficOf,
  type Traffic,
  toTrafficQuery,
} from '../../logic/matrix/access.ts';
import { enforcers } from '../../logic/rules/describe-rules.ts';
import { toSentence } from '../../logic/text/format.ts';
import { useReading } from '../../read.ts';
import { Loading, Problem } from '../request-state.tsx';
import { Facts } from '../why.tsx';

interface DecisionProps {
  readonly network: number;
  /** The selectors of both ends. */
  readonly from: string;
  readonly to: string;
  readonly traffic: Traffic;
}

/** What the rules decide for one pair, by which rule, and where. */
export function Decision({ network, from, to, traffic }: DecisionProps): JSX.Element {
  const query = toTrafficQuery(traffic, { from, to });
  const { data, isRead, problem } = useReading<RuleDecision>(`api/networks/${network}/rules/why?${query}`, null);
  const state = data?.verdict === 'allow' ? 'allowed' : 'denied';
  return (
    <div aria-busy={!isRead}>
      {!isRead && <Loading />}
      <Problem text={problem} />
      {data !== null && (
        <>
          <p>
            <Access state={state} text={`${describeTrafficOf(traffic)} is ${state}`} />
          </p>
          <p>{toSentence(data.why)}</p>
          <Facts
            facts={[
              ...(data.rule === null ? [] : [['Rule', data.rule] as const]),
              ...data.points.map(({ peer, by }) => [`Enforced at ${peer.name}`, `by ${enforcers[by]}`] as const),
            ]}
          />
        </>
      )}
    </div>
  );
}

interface AccessProps {
  readonly state: AccessState;
  /** A text instead of the state's name. */
  readonly text?: string;
}

/** A verdict as shape and word. */
export function Access({ state, text = state }: AccessProps): JSX.Element {
  return (
    <span class="state">
      <svg class="mark" viewBox="0 0 16 16" aria-hidden="true">
        <path class={`cell ${state}`} d={accessShapes[state]} />
      </svg>
      {text}
    </span>
  );
}
