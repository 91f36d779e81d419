import type { HostEvent } from '../../host/host.ts';
import type { Pass } from '../reconcile/pass.ts';

/** `wake`: a sleep, a clock jump, or a user's reload. `underlay`: another network. */
export type ResetCause = 'wake' | 'underlay';

/** One concern of the daemon that goes beyond a single pass over a network. */
export interface PassListener {
  /** Called after each successful pass, one by one. A thrown error fails the pass. */
  onPass?(pass: Pass): void | Promise<void>;
  /** Called before `onPass`, and after a failed pass: its problem, or null. */
  onResult?(problem: unknown): void;
  /** Called once at the start; resolves when `signal` aborts. */
  run?(signal: AbortSignal): Promise<void>;
  /** Called once after the last pass. */
  onEnd?(): Promise<void>;
  /** Called for each host event. True if another interface's event is as urgent as our own's. */
  onEvent?(event: HostEvent): boolean;
  /** Called when observations from outside this host may be outdated. */
  reset?(cause: ResetCause): void;
}
