import type { Evaluation } from '../../../src/app/reconcile/evaluate-network.ts';
import type { Pass } from '../../../src/app/reconcile/pass.ts';
import type { Change } from '../../../src/core/reconcile/change.ts';

/** A pass that found this and made these repairs; null for a network that is down. */
export function passOf(evaluation: Partial<Evaluation> | null, changes: readonly Change[] = []): Pass {
  return { evaluation: evaluation && ({ changes, ...evaluation } as Evaluation), changes, isDrift: true };
}
