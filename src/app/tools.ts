import type { ListeningUser, PeerService, ServiceDescription } from '../api/service.ts';
import type { Feature } from '../core/map/features.ts';
import type { Resolved } from '../core/names/resolved-names.ts';
import type { ServiceAddress } from '../core/net/service-address.ts';
import type { Host } from '../host/host.ts';
import type { HostStore } from '../store/store.ts';
import type { EvaluationCache } from './evaluation-cache.ts';
import type { Meter } from './meter.ts';
import type { SavedConfigs } from './saved-configs.ts';

/** Everything a use case works with; made in one place, cli/context. */
export interface Tools {
  readonly host: Host;
  readonly store: HostStore;
  readonly evaluations: EvaluationCache;
  readonly savedConfigs: SavedConfigs;
  /** A client of a service, which uses what that describes and nothing else beyond the public contract. */
  connect(known: KnownService, patience?: ConnectOptions): Promise<PeerService>;
  /** Reads what a service describes; null where it has not changed since the ETag `known`. Ends soon, one way or another. */
  describe(address: ServiceAddress, known: string | null, signal?: AbortSignal): Promise<ServiceDescription | null>;
  /**
   * Finds the user whose program listens at a loopback address without TLS; null for other addresses, and where none is visible.
   *
   * @param before the user who is remembered
   */
  findListeningUser(address: ServiceAddress, before?: number): Promise<ListeningUser | null>;
  /** The wall clock, which people and other programs may set. */
  now(): Date;
  /** Seconds since this host was started, those asleep included. */
  uptime(): number;
  /** Seconds of a clock that stops while the host sleeps, and that is never set. */
  monotonic(): number;
  /** Ends early, and without an error, when `signal` aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<unknown>;
  random(bytes: number): Uint8Array;
  /**
   * Runs work that can be rolled back. A signal to end this process does not end it meanwhile, and aborts `interrupted`
   * with {@link Interrupted}.
   */
  deferSignals<T>(work: (interrupted: AbortSignal) => Promise<T>): Promise<T>;
  readonly log: Log;
  readonly meter: Meter;
  /** Tells a person which step is under way, and how the one before ended; `open` when it came to nothing. */
  progress(step: string, before?: 'done' | 'open'): void;
  /** Tells a person what went otherwise than they may expect, though nothing failed. */
  warn(text: string): void;
}

/** For functions that read the saved states, and warn of what they skip. */
export type StateTools = Pick<Tools, 'store' | 'warn'>;

/** For functions that observe or change the host, and keep the state of a network. */
export type HostTools = Pick<Tools, 'host' | 'store'>;

/** For functions that call the control plane, and keep what it describes. */
export type ServiceTools = Pick<Tools, 'store' | 'connect' | 'describe' | 'log'>;

/** A service, and what it described when its description was last read; null until it could be. A state is one. */
export interface KnownService {
  readonly service: ServiceAddress;
  readonly features: readonly Feature[] | null;
  /** The addresses of its name for when the resolver fails. */
  readonly resolved?: Resolved;
  /** There where the service stated that the network was deleted, and its tunnel is down. */
  readonly deletion?: object;
}

/** How long a call to the control plane goes on before it is given up. */
export interface ConnectOptions {
  /** Milliseconds within which it ends, one way or another; 30 s by default. */
  readonly deadlineMs?: number;
  /** For one who will ask again anyway, the fewer the sooner it is known. */
  readonly attempts?: number;
  /**
   * `leave`: a call that succeeds leaves its connection, a new one, to the next call. `keep`: it uses the one that was left, and leaves
   * it again. By default it closes it.
   */
  readonly connection?: 'leave' | 'keep';
  /** Called where an operation that the service describes is answered as if it were not there. */
  readonly onAbsent?: () => void;
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
