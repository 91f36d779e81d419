import {
  findApprovalProblem,
  findExpiryProblem,
  findForeignRouteProblems,
  findHostsProblem,
  findPinProblems,
  findSkippedPeers,
  findUnusedEndpoints,
} from '../../problems/find-problems.ts';
import { findAccessProblems } from '../../problems/find-state-problems.ts';
import type { Pass } from '../../reconcile/pass.ts';
import type { Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';
import { ProblemLog } from '../transition-logger.ts';

/** Per map; `cpn status` counts the others. */
const mostSkipped = 20;

/** Logs problems that follow from the network and this host alone. */
export class ProblemListener implements PassListener {
  readonly #tools: Tools;
  readonly #log: ProblemLog;

  constructor(tools: Tools) {
    this.#tools = tools;
    this.#log = new ProblemLog(tools.log);
  }

  onPass({ evaluation }: Pass): void {
    if (evaluation === null) return;
    const { state } = evaluation;
    this.#log.update([
      ...findApprovalProblem(state),
      ...findExpiryProblem(state, this.#tools.now()),
      ...findAccessProblems(evaluation),
      ...findPinProblems(state),
      ...findSkippedPeers(state, mostSkipped),
      ...findUnusedEndpoints(evaluation),
      ...findForeignRouteProblems(evaluation),
      ...findHostsProblem(evaluation),
    ]);
  }
}
