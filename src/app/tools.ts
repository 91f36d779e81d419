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
  now(): Date;
  sleep(milliseconds: number): Promise<unknown>;
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
}

/** Seconds since the epoch, as WireGuard counts handshakes. */
export function secondsNow(tools: Pick<Tools, 'now'>): number {
  return Math.floor(tools.now().getTime() / 1000);
}
