import type { Change } from '../core/reconcile/change.ts';

/** The outcome of a pass. `postponed` is recurring drift that is left to a later pass. */
export type PassOutcome = (typeof passOutcomes)[number];
export const passOutcomes = ['steady', 'changed', 'repaired', 'postponed', 'failed'] as const;

/** Counts the daemon's work for a network, for its metrics. Never throws. */
export interface Meter {
  /** The network is reconciled from now on: its counters start at zero. */
  begin(link: string): void;
  /** A pass ended after the given seconds. */
  passed(link: string, outcome: PassOutcome, seconds: number): void;
  /** A pass made these changes: to repair drift, or because the network changed. */
  changed(link: string, changes: readonly Change[], isDrift: boolean): void;
  /** Routes, or the relaying of the network's range, moved from one connector to another. */
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
