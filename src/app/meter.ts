import type { Change } from '../core/reconcile/change.ts';

/** How a pass ended; `postponed` is drift that keeps coming back, left to a later pass. */
export type PassOutcome = (typeof passOutcomes)[number];
export const passOutcomes = ['steady', 'changed', 'repaired', 'postponed', 'failed'] as const;

/** Counts what a daemon does for a network, for its metrics. Never throws. */
export interface Meter {
  /** The network is reconciled from now on: its counters start at zero. */
  begin(link: string): void;
  /** A pass ended after so many seconds. */
  passed(link: string, outcome: PassOutcome, seconds: number): void;
  /** A pass made these changes: to repair drift, or because the network changed. */
  changed(link: string, changes: readonly Change[], isDrift: boolean): void;
  /** Routes, or the relaying of the network's range, went from one connector to another. */
  failedOver(link: string): void;
  /** A call to the control plane failed after all its retries, with an error of that name. */
  callFailed(link: string, operation: string, error: string): void;
}

/** Counts nothing: for commands, which have no metrics. */
export const noMeter: Meter = {
  begin: () => {},
  passed: () => {},
  changed: () => {},
  failedOver: () => {},
  callFailed: () => {},
};
