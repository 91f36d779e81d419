import type { ListeningUser, PeerService, ServiceDescription } from '../api/service.ts';
import type { Feature } from '../core/map/features.ts';
import type { Resolved } from '../core/names/resolved-names.ts';
import type { ServiceAddress } from '../core/net/service-address.ts';
import type { AttemptOutcome, PathSwitch } from '../core/paths/path-record.ts';
import type { Change } from '../core/reconcile/change.ts';
import type { Host } from '../host/host.ts';
import type { HostStore } from '../store/store.ts';
import type { EvaluationCache } from './evaluation-cache.ts';
import type { SavedConfigs } from './saved-configs.ts';

/** The dependencies of all use cases; cli/context creates them. */
export interface Tools {
  readonly host: Host;
  readonly store: HostStore;
  readonly evaluations: EvaluationCache;
  readonly savedConfigs: SavedConfigs;
  /** Creates a client that uses only the public contract and the described extensions. */
  connect(known: KnownService, patience?: ConnectOptions): Promise<PeerService>;
  /** Reads a service's description; null if unchanged since the ETag `known`. Ends soon. */
  describe(address: ServiceAddress, known: string | null, signal?: AbortSignal): Promise<ServiceDescription | null>;
  /**
   * Finds the user whose program listens at a loopback address without TLS; null for other
   * addresses, and if none is visible.
   *
   * @param before the recorded user
   */
  findListeningUser(address: ServiceAddress, before?: number): Promise<ListeningUser | null>;
  /** The wall clock, which users and programs may set. */
  now(): Date;
  /** Seconds since this host was started, including time asleep. */
  uptime(): number;
  /** Seconds of a monotonic clock that stops while the host sleeps. */
  monotonic(): number;
  /** Ends early, without an error, if `signal` aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<unknown>;
  random(bytes: number): Uint8Array;
  /** Runs revertible work: a signal only aborts `interrupted` ({@link Interrupted}). */
  deferSignals<T>(work: (interrupted: AbortSignal) => Promise<T>): Promise<T>;
  readonly log: Log;
  readonly meter: Meter;
  /** Shows the user the step in progress, and the end of the one before; `open`: no result. */
  progress(step: string, before?: 'done' | 'open'): void;
  /** Reports an unexpected result to the user that is no failure. */
  warn(text: string): void;
}

/** For functions that read the saved states, and warn of skipped ones. */
export type StateTools = Pick<Tools, 'store' | 'warn'>;

/** For functions that observe or change the host, and keep the state of a network. */
export type HostTools = Pick<Tools, 'host' | 'store'>;

/** For functions that call the control plane, and keep its description. */
export type ServiceTools = Pick<Tools, 'store' | 'connect' | 'describe' | 'log'>;

/** A service, and the features of its last-read description, or null. A state is one. */
export interface KnownService {
  readonly service: ServiceAddress;
  readonly features: readonly Feature[] | null;
  /** The addresses of its name, used if the resolver fails. */
  readonly resolved?: Resolved;
  /** Set if the service stated that the network was deleted, and its tunnel is down. */
  readonly deletion?: object;
}

/** The limits of a call to the control plane. */
export interface ConnectOptions {
  /** Milliseconds until it ends; 30 s by default. */
  readonly deadlineMs?: number;
  /** A caller that retries anyway needs few attempts: it detects an outage sooner. */
  readonly attempts?: number;
  /**
   * `leave`: a successful call leaves its new connection to the next call. `keep`: it uses the
   * connection that was left, and leaves it again. By default it closes the connection.
   */
  readonly connection?: 'leave' | 'keep';
  /** Called if the service replies to a described operation as if it did not exist. */
  readonly onAbsent?: () => void;
}

/** A log of constant messages; variable facts are fields. */
export interface Log {
  debug(facts: object, message: string): void;
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}

/** Seconds since the epoch, the clock of WireGuard's handshakes. */
export function secondsNow(tools: Pick<Tools, 'now'>): number {
  return Math.floor(tools.now().getTime() / 1000);
}

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
  /** An attempt at a direct path ended. */
  triedPath(link: string, outcome: AttemptOutcome): void;
  /** A peer moved to a direct path, or back to the relay. */
  switchedPath(link: string, to: PathSwitch['to']): void;
  /** A call to the control plane failed after all retries; `error` is the error's name. */
  callFailed(link: string, operation: string, error: string): void;
}

/** Counts nothing: for commands, which have no metrics. */
export const noMeter: Meter = {
  begin: () => {},
  passed: () => {},
  changed: () => {},
  failedOver: () => {},
  triedPath: () => {},
  switchedPath: () => {},
  callFailed: () => {},
};
