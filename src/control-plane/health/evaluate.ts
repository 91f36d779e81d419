import { setTimeout as sleep } from 'node:timers/promises';
import type { PeerVerdict } from '../../core/health/verdict/verdict.ts';
import { type ClockWatch, createClockWatch } from '../database-clock.ts';
import { NotFound } from '../errors.ts';
import { appendEvents } from '../service/append-events.ts';
import type { Context } from '../service/context.ts';
import { makeNonce } from '../store/changes.ts';
import { listNetworksToJudge, reviseHealth, saveAnnouncedRoutes, savePeerHealth } from '../store/health.ts';
import { readSnapshot, transact } from '../store/transact.ts';
import type { FailureLog } from './failure-log.ts';
import { Judge } from './judge.ts';
import { type JudgedNetwork, lostAtOf, type Observation, observeNetwork } from './observe.ts';
import { type Presence, silentMs } from './presence.ts';
import { isRevisionDue, reviseRelay } from './revise-relay.ts';
import {
  createEventLimits,
  type EventLimits,
  type EventSubject,
  findTransitions,
  type Transitions,
} from './transitions.ts';

export interface HealthEvaluation {
  readonly observation: Observation;
  readonly judged: JudgedNetwork;
  /** True if replies include the time of the last request. */
  readonly keepsPresence: boolean;
}

export interface EvaluatorOptions {
  /** If false, the stored facts of a peer are deleted when it goes offline. */
  readonly keepsPresence: boolean;
  readonly tickMs: number;
  readonly settleMs: number;
  readonly failures: Pick<FailureLog, 'note'>;
  /** Called with silent peers of a network that the last event stated to be online. */
  readonly onSilent?: (network: number, peers: readonly number[]) => void;
}

interface NetworkState {
  timer?: NodeJS.Timeout | undefined;
  /** When the timer ends, in milliseconds of the monotonic clock. */
  dueAt: number;
  pending?: Promise<HealthEvaluation> | undefined;
  /** The evaluation that readers wait for. */
  reading?: Promise<HealthEvaluation> | undefined;
  last?: { readonly evaluation: HealthEvaluation; readonly at: number } | undefined;
  tookMs: number;
  isDirty: boolean;
  /** The number of times that transitions were written. */
  writes: number;
  /** True if an event waits because of the limit of its subject. */
  isHeldBack: boolean;
  /** Ticks do not evaluate the network before this instant. */
  quietUntil: number;
}

/** A process whose tick is this late was suspended, and received nothing meanwhile. */
const suspendedMs = 10_000;
/** The maximum age of the verdict in a reply to a report. */
const replyAgeMs = 10_000;
/** The maximum share of the time that evaluations of a large network take. */
const share = 1 / 20;
/** The same share after requested probes, because a dead host must be stated soon. */
const awaitedShare = 1 / 4;
const longestAwaitedPauseMs = 1_000;
/** The same share for evaluations by readers, who wait at most `longestReaderPauseMs`. */
const readerShare = 1 / 8;
const longestReaderPauseMs = 5_000;

/** Judges networks and writes changed verdicts with events. One process writes each change. */
export class Evaluator {
  readonly #context: Context;
  readonly #options: EvaluatorOptions;
  readonly #presence: Pick<Presence, 'setOnline'>;
  readonly #judge: Judge;
  readonly #networks = new Map<number, NetworkState>();
  readonly #eventLimits: EventLimits;
  readonly #clockWatch: ClockWatch;
  readonly #timer: NodeJS.Timeout;
  #tickedAt = Date.now();
  #ticking: Promise<void> | undefined;
  #isStopped = false;

  constructor(context: Context, presence: Pick<Presence, 'silenceOf' | 'setOnline'>, options: EvaluatorOptions) {
    this.#context = context;
    this.#presence = presence;
    this.#judge = new Judge(context, presence);
    this.#options = options;
    this.#eventLimits = createEventLimits(context.steadyNow);
    this.#clockWatch = createClockWatch(context);
    this.#timer = setInterval(() => {
      // While the database does not answer, a tick takes longer than the interval.
      this.#ticking ??= this.#tick().finally(() => {
        this.#ticking = undefined;
      });
    }, options.tickMs);
    this.#timer.unref();
  }

  /** Evaluates soon, batching changes. @param isAwaited true for results of requested probes */
  schedule(network: number, isAwaited = false): void {
    const state = this.#stateOf(network);
    state.isDirty = true;
    this.#evaluateIn(isAwaited ? this.#awaitedPauseOf(state) : this.#pauseOf(state), network, state);
  }

  /** Evaluates a network after this time, unless it is evaluated earlier. */
  #evaluateIn(ms: number, network: number, state: NetworkState): void {
    const dueAt = performance.now() + ms;
    if (this.#isStopped || (state.timer !== undefined && state.dueAt <= dueAt)) return;
    clearTimeout(state.timer);
    state.dueAt = dueAt;
    state.timer = setTimeout(() => {
      state.timer = undefined;
      this.#evaluateFully(network).catch(() => undefined);
    }, ms);
    state.timer.unref();
  }

  /** Evaluates a network now. Calls before its read begins share the result. @throws NotFound */
  evaluate(network: number): Promise<HealthEvaluation> {
    const state = this.#stateOf(network);
    state.pending ??= new Promise((resolve) => setImmediate(resolve)).then(async () => {
      state.pending = undefined;
      state.isDirty = false;
      const startedAt = performance.now();
      const evaluation = await this.#evaluateNow(network).catch((error) => {
        if (error instanceof NotFound) this.#forget(network);
        throw error;
      });
      state.tookMs = performance.now() - startedAt;
      state.last = { evaluation, at: performance.now() };
      return evaluation;
    });
    return state.pending;
  }

  /** Evaluates a network for a reader, soon but at a limited rate. @throws NotFound */
  read(network: number): Promise<HealthEvaluation> {
    const state = this.#stateOf(network);
    const { tookMs, last } = state;
    const pauseMs =
      Math.min(tookMs / readerShare - tookMs, longestReaderPauseMs) -
      (performance.now() - (last?.at ?? Number.NEGATIVE_INFINITY));
    if (pauseMs <= 0 || this.#isStopped) return this.evaluate(network);
    state.reading ??= sleep(pauseMs).then(() => {
      state.reading = undefined;
      return this.evaluate(network);
    });
    return state.reading;
  }

  /** Returns an evaluation that may be some seconds old; null for a deleted network. */
  async readRecent(network: number): Promise<HealthEvaluation | null> {
    const { last, isDirty } = this.#networks.get(network) ?? {};
    if (last && !isDirty && performance.now() - last.at < replyAgeMs) return last.evaluation;
    return this.read(network).catch((error: unknown) => {
      if (error instanceof NotFound) return null;
      throw error;
    });
  }

  /** Returns the verdict on a peer, which may be some seconds old. */
  async verdictOf(network: number, peer: number): Promise<PeerVerdict> {
    const state = this.#stateOf(network);
    const mostMs = state.isDirty ? this.#pauseOf(state) - this.#options.settleMs : replyAgeMs;
    const last = state.last && performance.now() - state.last.at < mostMs ? state.last.evaluation : null;
    const known = last?.judged.peers.get(peer);
    if (known?.isHeard) return known;
    const verdict = (await this.evaluate(network)).judged.peers.get(peer);
    if (!verdict) throw new NotFound('peer');
    return verdict;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#timer);
    for (const { timer } of this.#networks.values()) clearTimeout(timer);
    await this.#ticking;
    await Promise.allSettled([...this.#networks.values()].map(({ pending }) => pending));
  }

  #note(part: string | number, error: unknown): void {
    if (!this.#isStopped) this.#options.failures.note(part, error instanceof NotFound ? null : error);
  }

  /** Evaluates networks with peers that became silent, or that returned at another process. */
  async #tick(): Promise<void> {
    const { db, readTime } = this.#context;
    // Only the wall clock includes the time of a suspension.
    const tickedAt = Date.now();
    if (tickedAt - this.#tickedAt > this.#options.tickMs + suspendedMs) this.#judge.listenAgain();
    this.#tickedAt = tickedAt;
    const at = performance.now();
    try {
      await this.#clockWatch.check();
      const since = new Date((await readTime(db)).getTime() - silentMs).toISOString();
      const heldBack = [...this.#networks].flatMap(([network, { isHeldBack }]) => (isHeldBack ? network : []));
      for (const network of new Set([...(await listNetworksToJudge(db, since)), ...heldBack])) {
        const state = this.#stateOf(network);
        if (state.quietUntil > at) continue;
        const isChanged = await this.#evaluateFully(network).catch((error: unknown) => {
          // The network was deleted meanwhile.
          if (error instanceof NotFound) return true;
          throw error;
        });
        // For example, a network whose hosts are all silent.
        if (!isChanged) state.quietUntil = at + 3 * this.#options.tickMs;
      }
      for (const [network, { isDirty, timer }] of this.#networks) {
        if (isDirty && timer === undefined) this.schedule(network);
      }
      this.#note('tick', null);
    } catch (error) {
      // Without the database, hosts get no replies and make no requests.
      this.#judge.listenAgain();
      this.#note('tick', error);
    }
  }

  /** Evaluates a network and writes changes; true if any. After a failure it stays dirty. */
  async #evaluateFully(network: number): Promise<boolean> {
    const state = this.#stateOf(network);
    try {
      const isChanged = await this.#update(network, state);
      this.#note(network, null);
      return isChanged;
    } catch (error) {
      state.isDirty = true;
      this.#note(network, error);
      throw error;
    }
  }

  async #update(network: number, state: NetworkState): Promise<boolean> {
    const { writes } = state;
    const { observation, judged } = await this.evaluate(network);
    // An observation from before a write ended is older than the state that the write set.
    for (const { peer, health } of state.writes === writes ? observation.peers : []) {
      this.#presence.setOnline(peer.id, health?.announced === 'online' && lostAtOf(health) === null);
    }
    this.#options.onSilent?.(network, findSilent(observation, judged));
    // A verdict with a delay needs an evaluation at its end, even without another report.
    const deadIn = [...judged.routes.values()].flatMap((route) => route.deadIn ?? []);
    if (deadIn.length > 0) this.#evaluateIn(Math.max(Math.min(...deadIn) * 1000, this.#pauseOf(state)), network, state);
    const transitions = findTransitions(observation, judged, this.#mayState(network));
    state.isHeldBack = transitions.isHeldBack;
    const isChanged = isAny(transitions);
    if (isChanged) await this.#announce(network, state);
    // The states of connectors in the last events determine the relay.
    if (transitions.peers.length === 0 && !isRevisionDue(observation, this.#context.now())) return isChanged;
    await reviseRelay(this.#context, network);
    return true;
  }

  async #announce(network: number, state: NetworkState): Promise<void> {
    const written = await this.#write(network);
    state.writes += 1;
    for (const [peer, announced] of written?.peers ?? []) this.#presence.setOnline(peer, announced === 'online');
    this.#eventLimits.take(network, written?.subjects ?? []);
    if (written) this.#context.healthNotifier.notify(network);
    state.last = undefined;
  }

  #mayState(network: number): (subject: EventSubject, count?: number) => boolean {
    return (subject, count) => this.#eventLimits.hasRoom(network, subject, count);
  }

  /** Reads the state again under a lock: another process may have written the same transitions. */
  async #write(network: number): Promise<Transitions | null> {
    const { db, random, announce } = this.#context;
    return transact(db, async (transaction) => {
      await reviseHealth(transaction, network, makeNonce(random));
      const observation = await observeNetwork(transaction, network);
      const judged = await this.#judge.judge(transaction, observation);
      const transitions = findTransitions(observation, judged, this.#mayState(network));
      if (!isAny(transitions)) return null;
      const nothing = { last_seen: null, report: null, reported_at: null, lost_at: null };
      const forgotten = this.#options.keepsPresence ? {} : nothing;
      for (const [peer, announced] of transitions.peers) {
        await savePeerHealth(transaction, peer, { announced, ...(announced !== 'online' && forgotten) });
      }
      if (transitions.routes !== null) await saveAnnouncedRoutes(transaction, network, transitions.routes);
      if (transitions.events.length > 0) await appendEvents(this.#context, transaction, network, transitions.events);
      else await announce(transaction, network, 'health');
      return transitions;
    });
  }

  async #evaluateNow(network: number): Promise<HealthEvaluation> {
    const { db } = this.#context;
    const observation = await readSnapshot(db, (transaction) => observeNetwork(transaction, network));
    const judged = await this.#judge.judge(db, observation);
    return { observation, judged, keepsPresence: this.#options.keepsPresence };
  }

  #forget(network: number): void {
    this.#networks.delete(network);
    this.#judge.forget(network);
  }

  #pauseOf({ tookMs }: NetworkState): number {
    return Math.max(this.#options.settleMs, tookMs / share);
  }

  #awaitedPauseOf({ tookMs }: NetworkState): number {
    return Math.max(this.#options.settleMs, Math.min(tookMs / awaitedShare, longestAwaitedPauseMs));
  }

  #stateOf(network: number): NetworkState {
    const state = this.#networks.get(network) ?? {
      ...{ tookMs: 0, dueAt: 0, isDirty: true, isHeldBack: false, quietUntil: 0, writes: 0 },
    };
    this.#networks.set(network, state);
    return state;
  }
}

function findSilent({ peers }: Observation, judged: JudgedNetwork): number[] {
  return peers.flatMap(({ peer, health }) => {
    const verdict = judged.peers.get(peer.id);
    const isSilent = verdict !== undefined && (!verdict.isHeard || verdict.isLost);
    return health?.announced === 'online' && isSilent ? peer.id : [];
  });
}

function isAny({ peers, routes, events }: Transitions): boolean {
  return peers.length > 0 || routes !== null || events.length > 0;
}
