import type { HostEvent } from '../../host/host.ts';
import type { Pass } from '../reconcile/pass.ts';

/**
 * `wake`: the host slept, its clock jumped, or a user requested a reload. `underlay`: the host is
 * in another network.
 */
export type ResetCause = 'wake' | 'underlay';

/** One concern of the daemon that goes beyond a single pass over a network. */
export interface PassListener {
  /**
   * Called after each successful pass, one listener after the other. An error that it throws fails
   * the pass.
   */
  onPass?(pass: Pass): void | Promise<void>;
  /**
   * Called before `onPass`, and after a failed pass: the problem of the pass, or null after a
   * success.
   */
  onResult?(problem: unknown): void;
  /** Called once at the start; resolves when `signal` aborts. */
  run?(signal: AbortSignal): Promise<void>;
  /**
   * Called for each event of the host. Returns true for an event of another interface whose pass is
   * as urgent as for this network's own interface.
   */
  onEvent?(event: HostEvent): boolean;
  /** Called when observations from outside this host may be outdated. */
  reset?(cause: ResetCause): void;
}
