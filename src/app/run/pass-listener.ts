import type { HostEvent } from '../../host/host.ts';
import type { Pass } from '../reconcile/pass.ts';

/** `wake`: the host slept, its clock jumped, or a user requested a reload. `underlay`: the host is in another network. */
export type ResetCause = 'wake' | 'underlay';

/** One concern of the daemon that goes beyond a single pass over a network. */
export interface PassListener {
  /** Called after each pass that did not fail, one listener after the other. What it throws makes the pass a failure. */
  onPass?(pass: Pass): void | Promise<void>;
  /** Called before `onPass`, and after a pass that failed: the problem of the pass, or null once one succeeded. */
  onResult?(problem: unknown): void;
  /** Called once at the start; resolves when `signal` aborts. */
  run?(signal: AbortSignal): Promise<void>;
  /** Called for each event of the host. True for an event of another interface whose pass is as urgent as for this network's own. */
  onEvent?(event: HostEvent): boolean;
  /** Called when observations from outside this host may be outdated. */
  reset?(cause: ResetCause): void;
}
