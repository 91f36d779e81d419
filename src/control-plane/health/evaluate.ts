import { setTimeout as sleep } from 'node:timers/promises';
import type { PeerVerdict } from '../../core/health/verdict.ts';
import { NotFound } from '../errors.ts';
import type { Context } from '../service/context.ts';
import { createPeerChangeLimit, type PeerChangeLimit } from '../service/peer-change-limit.ts';
import { makeNonce } from '../store/changes.ts';
import { listNetworksToJudge, reviseHealth, saveAnnouncedRoutes, savePeerHealth } from '../store/health.ts';
import type { Db } from '../store/tables.ts';
import { readSnapshot, transact } from '../store/transact.ts';
import { appendEvents } from './append-events.ts';
import type { FailureLog } from './failure-log.ts';
import { type JudgedNetwork, judgeNetwork, type LastSeen, type Observation, observeNetwork } from './observe.ts';
import type { Presence } from './presence.ts';
import { findTransitions, reportedPeers, type Subject, type Transitions } from './transitions.ts';

/** A network as it is observed, and what follows from it. */
export interface Evaluation {
  readonly observation: Observation;
  readonly judged: JudgedNetwork;
  /** When peers were seen is shown. */
  readonly keepsPresence: boolean;
}

export interface EvaluatorOptions {
  /** Without it, what is stored of a peer that goes offline is forgotten. */
  readonly keepsPresence: boolean;
  readonly tickMs: number;
  readonly settleMs: number;
  readonly failures: Pick<FailureLog, 'note'>;
}

interface NetworkState {
  timer?: NodeJS.Timeout | undefined;
  pending?: Promise<Evaluation> | undefined;
  /** What readers wait for. */
  reading?: Promise<Evaluation> | undefined;
  last?: { readonly evaluation: Evaluation; readonly at: number } | undefined;
  /** How long the last evaluation took. */
  tookMs: number;
  isDirty: boolean;
  /** How often transitions were written. */
  writes: number;
  /** An event waits until there may be another one about its subject. */
  isHeldBack: boolean;
  /** Until then ticks do not evaluate it. */
  quietUntil: number;
  isDeaf: boolean;
  /** When a host was heard again after none was. */
  heardSince: number;
}

/** A process whose tick is so late was suspended: it received nothing meanwhile. */
const suspendedMs = 10_000;
const silentMs = 90_000;
/** How old the verdict in a reply to a report may be. */
const replyAgeMs = 10_000;
/** An evaluation of a large network takes at most this part of the time. */
const share = 1 / 20;
/** The same for evaluations that readers ask for, who wait no longer than that. */
const readerShare = 1 / 8;
const longestReaderPauseMs = 5_000;
/**
 * Events about the state of one peer or route, and of all peers that only other hosts report of: so many at once, and
 * one more each interval. Any host can report what makes others look dead or alive that the control plane does not hear.
 */
const stateEvents = { most: 10, refillMs: 600_000 } as const;
const reportedEvents = { most: 60, refillMs: 60_000 } as const;

/** Judges networks, and writes what changes with its events. Of several processes on one database one writes each. */
export class Evaluator {
  readonly #context: Context;
  readonly #options: EvaluatorOptions;
  readonly #presence: Pick<Presence, 'silenceOf' | 'setOnline'>;
  readonly #networks = new Map<number, NetworkState>();
  readonly #eventLimit: PeerChangeLimit<string>;
  readonly #reportedLimit: PeerChangeLimit<string>;
  readonly #timer: NodeJS.Timeout;
  /** By the clock of this process, as all instants here but those of ticks. */
  #listeningSince: number;
  #tickedAt = Date.now();
  #ticking: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(context: Context, presence: Pick<Presence, 'silenceOf' | 'setOnline'>, options: EvaluatorOptions) {
    this.#context = context;
    this.#presence = presence;
    this.#options = options;
    this.#eventLimit = createPeerChangeLimit(stateEvents.most, context.now, stateEvents.refillMs);
    this.#reportedLimit = createPeerChangeLimit(reportedEvents.most, context.now, reportedEvents.refillMs);
    this.#listeningSince = context.now().getTime();
    this.#timer = setInterval(() => {
      this.#ticking = this.#ticking.then(() => this.#tick());
    }, options.tickMs);
    this.#timer.unref();
  }

  /** Evaluates a network soon, together with what else changes meanwhile. */
  schedule(network: number): void {
    const state = this.#stateOf(network);
    state.isDirty = true;
    if (this.#isStopped) return;
    state.timer ??= setTimeout(() => {
      state.timer = undefined;
      this.#evaluateFully(network).catch(() => undefined);
    }, this.#pauseOf(state));
    state.timer.unref();
  }

  /** Evaluates a network now. Calls that come before it is read share the evaluation. @throws NotFound */
  evaluate(network: number): Promise<Evaluation> {
    const state = this.#stateOf(network);
    state.pending ??= new Promise((resolve) => setImmediate(resolve)).then(async () => {
      state.pending = undefined;
      state.isDirty = false;
      const startedAt = performance.now();
      const evaluation = await this.#judge(network).catch((error) => {
        if (error instanceof NotFound) this.#networks.delete(network);
        throw error;
      });
      state.tookMs = performance.now() - startedAt;
      state.last = { evaluation, at: Date.now() };
      return evaluation;
    });
    return state.pending;
  }

  /** Evaluates a network for a reader: soon, however often readers come. @throws NotFound */
  read(network: number): Promise<Evaluation> {
    const state = this.#stateOf(network);
    const { tookMs, last } = state;
    const pauseMs = Math.min(tookMs / readerShare - tookMs, longestReaderPauseMs) - (Date.now() - (last?.at ?? 0));
    if (pauseMs <= 0 || this.#isStopped) return this.evaluate(network);
    state.reading ??= sleep(pauseMs).then(() => {
      state.reading = undefined;
      return this.evaluate(network);
    });
    return state.reading;
  }

  /** The verdict on a peer, which may be some seconds old. */
  async verdictOf(network: number, peer: number): Promise<PeerVerdict> {
    const state = this.#stateOf(network);
    const mostMs = state.isDirty ? this.#pauseOf(state) - this.#options.settleMs : replyAgeMs;
    const last = state.last && Date.now() - state.last.at < mostMs ? state.last.evaluation : null;
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

  /** Evaluates networks with peers that fell silent, or that are back at another process. */
  async #tick(): Promise<void> {
    const at = Date.now();
    const { db, readTime, now } = this.#context;
    if (at - this.#tickedAt > this.#options.tickMs + suspendedMs) this.#listeningSince = now().getTime();
    this.#tickedAt = at;
    try {
      const since = new Date((await readTime(db)).getTime() - silentMs).toISOString();
      const heldBack = [...this.#networks].flatMap(([network, { isHeldBack }]) => (isHeldBack ? network : []));
      for (const network of new Set([...(await listNetworksToJudge(db, since)), ...heldBack])) {
        const state = this.#stateOf(network);
        if (state.quietUntil > at) continue;
        const isChanged = await this.#evaluateFully(network).catch((error: unknown) => {
          // Deleted meanwhile.
          if (error instanceof NotFound) return true;
          throw error;
        });
        // Such as a network whose hosts are all silent.
        if (!isChanged) state.quietUntil = at + 3 * this.#options.tickMs;
      }
      for (const [network, { isDirty, timer }] of this.#networks) {
        if (isDirty && timer === undefined) this.schedule(network);
      }
      this.#note('tick', null);
    } catch (error) {
      // Without the database hosts get no replies.
      this.#listeningSince = now().getTime();
      this.#note('tick', error);
    }
  }

  /** Evaluates a network, and writes what changed; true where something did. After a failure it stays dirty. */
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
    // What was read before a write ended is older than what that set.
    for (const { peer, health } of state.writes === writes ? observation.peers : []) {
      this.#presence.setOnline(peer.id, health?.announced === 'online');
    }
    const transitions = findTransitions(observation, judged, this.#mayState(network));
    state.isHeldBack = transitions.isHeldBack;
    if (!isAny(transitions)) return false;
    const written = await this.#write(network);
    state.writes += 1;
    for (const [peer, announced] of written?.peers ?? []) this.#presence.setOnline(peer, announced === 'online');
    for (const subject of written?.subjects ?? []) this.#limitOf(subject).take(subjectKey(network, subject), true);
    if (written) this.#context.healthNotifier.notify(network);
    state.last = undefined;
    return true;
  }

  #mayState(network: number): (subject: Subject, count?: number) => boolean {
    return (subject, count) => this.#limitOf(subject).hasRoom(subjectKey(network, subject), count);
  }

  #limitOf(subject: Subject): PeerChangeLimit<string> {
    return subject === reportedPeers ? this.#reportedLimit : this.#eventLimit;
  }

  /** Another process may have written the same, and judges by requests of its own: what is stored is read again under a lock. */
  async #write(network: number): Promise<Transitions | null> {
    const { db, random, announce } = this.#context;
    return transact(db, async (transaction) => {
      await reviseHealth(transaction, network, makeNonce(random));
      const observation = await observeNetwork(transaction, network);
      const judged = await this.#judgeObserved(transaction, observation);
      const transitions = findTransitions(observation, judged, this.#mayState(network));
      if (!isAny(transitions)) return null;
      const forgotten = this.#options.keepsPresence ? {} : { last_seen: null, report: null, reported_at: null };
      for (const [peer, announced] of transitions.peers) {
        await savePeerHealth(transaction, peer, { announced, ...(announced !== 'online' && forgotten) });
      }
      if (transitions.routes !== null) await saveAnnouncedRoutes(transaction, network, transitions.routes);
      if (transitions.events.length > 0) await appendEvents(this.#context, transaction, network, transitions.events);
      else await announce(transaction, network, 'health');
      return transitions;
    });
  }

  async #judge(network: number): Promise<Evaluation> {
    const { db } = this.#context;
    const observation = await readSnapshot(db, (transaction) => observeNetwork(transaction, network));
    const judged = await this.#judgeObserved(db, observation);
    return { observation, judged, keepsPresence: this.#options.keepsPresence };
  }

  async #judgeObserved(db: Db, observation: Observation): Promise<JudgedNetwork> {
    const state = this.#stateOf(observation.network.id);
    const local = this.#context.now().getTime();
    const now = (await this.#context.readTime(db)).getTime();
    const lastSeen: LastSeen = ({ peer, health }) => {
      const silence = this.#presence.silenceOf(peer.id);
      const instants = [health?.last_seen, health?.reported_at].flatMap((at) => (at ? [Date.parse(at)] : []));
      if (silence !== null) instants.push(now - silence);
      return instants.length === 0 ? null : Math.max(...instants);
    };
    const judge = () =>
      judgeNetwork(observation, lastSeen, now, now - (local - Math.max(this.#listeningSince, state.heardSince)));
    const judged = judge();
    const isDeaf = observation.peers.some(
      ({ peer, health }) => health?.announced === 'online' && judged.peers.get(peer.id)?.state === 'unknown',
    );
    if (isDeaf === state.isDeaf) return judged;
    state.isDeaf = isDeaf;
    if (isDeaf) return judged;
    // The first host is back after an outage: the others get the time that they have after a start.
    state.heardSince = local;
    return judge();
  }

  #pauseOf({ tookMs }: NetworkState): number {
    return Math.max(this.#options.settleMs, tookMs / share);
  }

  #stateOf(network: number): NetworkState {
    const state = this.#networks.get(network) ?? {
      ...{ tookMs: 0, isDirty: true, isHeldBack: false, quietUntil: 0, writes: 0 },
      ...{ isDeaf: false, heardSince: Number.NEGATIVE_INFINITY },
    };
    this.#networks.set(network, state);
    return state;
  }
}

function subjectKey(network: number, subject: Subject): string {
  return `${network} ${subject}`;
}

function isAny({ peers, routes, events }: Transitions): boolean {
  return peers.length > 0 || routes !== null || events.length > 0;
}
