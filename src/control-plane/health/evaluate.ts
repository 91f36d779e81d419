import type { Context } from '../service/context.ts';
import { type JudgedNetwork, judgeNetwork, type Observation, observeNetwork } from './observe.ts';

/** A network as it is observed, and what follows from it. */
export interface Evaluation {
  readonly observation: Observation;
  readonly judged: JudgedNetwork;
}

export type Evaluate = (network: number) => Promise<Evaluation>;

export function createEvaluator({ db, readTime }: Context): Evaluate {
  const listeningSince = Date.now();
  return async (network) => {
    const observation = await observeNetwork(db, network);
    const now = (await readTime(db)).getTime();
    const judged = judgeNetwork(
      observation,
      ({ health }) => {
        const instants = [health?.last_seen, health?.reported_at].flatMap((at) => (at ? [Date.parse(at)] : []));
        return instants.length === 0 ? null : Math.max(...instants);
      },
      now,
      listeningSince,
    );
    return { observation, judged };
  };
}
