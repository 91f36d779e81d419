import type { PeerService } from '../api/service.ts';
import type { ServiceAddress } from '../core/model.ts';
import type { Host } from '../host/host.ts';
import type { Store } from '../store/store.ts';

/** Everything a use case works with; made in one place, cli/context. */
export interface Tools {
  readonly host: Host;
  readonly store: Store;
  /** A client of the control plane; a call to it ends, one way or another, within `deadlineMs`, 30 s unless told. */
  connect(address: ServiceAddress, deadlineMs?: number): Promise<PeerService>;
  /** The wall clock, which people and other programs may set. */
  now(): Date;
  /** Seconds since this host was started, those asleep included. */
  uptime(): number;
  /** Seconds of a clock that stands still while the host sleeps, and that nobody sets. */
  monotonic(): number;
  /** Ends early, and without an error, when `signal` aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<unknown>;
  random(bytes: number): Uint8Array;
  readonly log: Log;
  /** Tells a person which step is under way. */
  progress(step: string): void;
  /** Tells a person what went otherwise than they may expect, though nothing failed. */
  warn(text: string): void;
}

/** A log of constant messages; what varies is in the facts. */
export interface Log {
  debug(facts: object, message: string): void;
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}

/** Seconds since the epoch, as WireGuard counts handshakes. */
export function secondsNow(tools: Pick<Tools, 'now'>): number {
  return Math.floor(tools.now().getTime() / 1000);
}
