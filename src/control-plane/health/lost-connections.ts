import { randomInt } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { PathState } from '../../contract/health.ts';
import { mostProbed } from '../../contract/network.ts';
import { chooseWitnesses } from '../../core/health/verdict/choose-witnesses.ts';
import type { Caller } from '../domain/caller.ts';
import { NotFound } from '../errors.ts';
import type { Addressed, PeerMessages } from '../push/peer-messages.ts';
import type { Context } from '../service/context.ts';
import { listLost, type StoredHealth, savePeerHealth } from '../store/health.ts';
import { readSnapshot, transact } from '../store/transact.ts';
import type { FailureLog } from './failure-log.ts';
import { lostAtOf, type Observation, observeNetwork } from './observe.ts';
import type { Presence } from './presence.ts';

export interface LossTimes {
  /** Milliseconds that a host has for a request after its connection was closed. */
  readonly closedMs: number;
  /** The same after a reply: a proxy may keep the connection to a host that is gone. */
  readonly repliedMs: number;
  /** The minimum time between two probe requests about one peer. */
  readonly repeatMs: number;
  /**
   * The pause between searches for a host that can probe: after an outage, all may be back soon.
   */
  readonly retryMs: number;
}

interface LossOptions extends LossTimes {
  readonly settleMs: number;
  readonly failures: Pick<FailureLog, 'note'>;
}

interface FollowedNetwork {
  readonly network: number;
  waiting: number;
  /** How often it was overdue since it last waited. */
  overdue: number;
  timer?: NodeJS.Timeout;
}

/** A host whose wait ended and that made no request in time. */
interface Loss {
  /** An instant between the end of its wait and its request's deadline, by this process's clock. */
  readonly at: number;
  readonly requests: number;
  /** The number of attempts without a host that can probe. */
  readonly tries?: number;
}

/** Limits the probes of a host that only polls: it returns, but is lost before it waits again. */
const mostOverdue = 2;
/** How long a lost host may be away and still count as one that waits. */
const rememberedMs = 10 * 60_000;

/** After this many attempts, the host is silent for so long that the silence alone is a verdict. */
const mostTries = 20;

/** Milliseconds of silence after which a host cannot be a witness. */
const inTouchMs = 90_000;

/** Has other hosts probe a host that made no request after its wait. Only their reports decide. */
export class LostConnections {
  readonly #context: Context;
  readonly #presence: Pick<Presence, 'requestsOf' | 'expect'>;
  readonly #messages: Pick<PeerMessages, 'send'>;
  readonly #options: LossOptions;
  readonly #following = new Map<number, FollowedNetwork>();
  /** The peers to be probed, by network. */
  readonly #due = new Map<number, Map<number, Loss | null>>();
  readonly #timers = new Set<NodeJS.Timeout>();
  /** When a probe of each peer was last requested, in milliseconds of the monotonic clock. */
  readonly #askedAt = new Map<number, number>();
  #asking: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(
    context: Context,
    presence: Pick<Presence, 'requestsOf' | 'expect'>,
    messages: Pick<PeerMessages, 'send'>,
    options: LossOptions,
  ) {
    this.#context = context;
    this.#presence = presence;
    this.#messages = messages;
    this.#options = options;
  }

  /** Follows a waiting request until its reply has ended. */
  watch(caller: Caller, response: ServerResponse): void {
    if (caller.kind !== 'peer' || response.destroyed) return;
    const { peerId, networkId } = caller;
    const following = this.#following.get(peerId) ?? { network: networkId, waiting: 0, overdue: 0 };
    this.#following.set(peerId, following);
    clearTimeout(following.timer);
    following.waiting += 1;
    following.overdue = 0;
    response.once('close', () => {
      following.waiting -= 1;
      if (following.waiting > 0 || this.#isStopped) return;
      const { closedMs, repliedMs } = this.#options;
      this.#expectRequest(peerId, following, response.writableFinished ? repliedMs : closedMs);
    });
  }

  /** Expects a request after each request of a host that waited before, until it waits again. */
  noteRequest(peer: number): void {
    const following = this.#following.get(peer);
    if (following === undefined || following.waiting > 0 || this.#isStopped) return;
    this.#expectRequest(peer, following, this.#options.repliedMs);
  }

  /** Has other hosts probe silent peers that were stated online, unless they did so recently. */
  ask(network: number, peers: readonly number[]): void {
    for (const peer of peers) if (this.#askedAgo(peer) >= this.#options.repeatMs) this.#schedule(network, peer, null);
  }

  /** True if probes of one of these peers were requested recently. */
  isAwaited(peers: readonly number[]): boolean {
    return peers.some((peer) => this.#askedAgo(peer) < this.#options.repeatMs);
  }

  /** Another process has requested probes: this one only writes presence immediately. */
  async noteAsked(network: number): Promise<void> {
    const { db, readTime } = this.#context;
    const lost = await listLost(db, network);
    if (lost.length === 0) return;
    const [storeNow, now] = [(await readTime(db)).getTime(), this.#now()];
    for (const { peer_id, lost_at } of lost) {
      this.#askedAt.set(peer_id, performance.now());
      const lostAt = Date.parse(lost_at) - storeNow + now;
      const isWaiting = (this.#following.get(peer_id)?.waiting ?? 0) > 0;
      this.#presence.expect(peer_id, lostAt, isWaiting);
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const { timer } of this.#following.values()) clearTimeout(timer);
    for (const timer of this.#timers) clearTimeout(timer);
    await this.#asking;
  }

  #expectRequest(peer: number, following: FollowedNetwork, ms: number): void {
    const loss = { at: this.#now(), requests: this.#presence.requestsOf(peer) };
    setTimer(following, ms, () => this.#onOverdue(peer, following, loss));
  }

  #onOverdue(peer: number, following: FollowedNetwork, { at, requests }: Loss): void {
    if (following.waiting > 0) return;
    const rest = this.#options.repeatMs - this.#askedAgo(peer);
    if (rest > 0) {
      // A host that drops its connections again and again costs others no more than a dead host.
      setTimer(following, rest, () => this.#onOverdue(peer, following, { at, requests }));
      return;
    }
    following.overdue += 1;
    const forget = () => this.#following.delete(peer);
    if (following.overdue >= mostOverdue) forget();
    else setTimer(following, rememberedMs, forget);
    // Midway between the last request and a late one: the clocks of two processes may differ.
    this.#schedule(following.network, peer, { at: (at + this.#now()) / 2, requests });
  }

  #schedule(network: number, peer: number, loss: Loss | null): void {
    if (this.#isStopped) return;
    const due = this.#due.get(network) ?? new Map<number, Loss | null>();
    due.set(peer, loss ?? due.get(peer) ?? null);
    if (this.#due.has(network)) return;
    this.#due.set(network, due);
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#due.delete(network);
      const note = (error: unknown) =>
        this.#options.failures.note('lost connections', error instanceof NotFound ? null : error);
      this.#asking = this.#asking.then(() => this.#ask(network, due)).then(() => note(null), note);
    }, this.#options.settleMs);
    timer.unref();
    this.#timers.add(timer);
  }

  #retry(network: number, peer: number, loss: Loss | null): void {
    if (loss === null || this.#isStopped) return;
    const tries = (loss.tries ?? 0) + 1;
    if (tries > mostTries) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#schedule(network, peer, { ...loss, tries });
    }, this.#options.retryMs);
    timer.unref();
    this.#timers.add(timer);
  }

  async #ask(network: number, due: ReadonlyMap<number, Loss | null>): Promise<void> {
    if (this.#isStopped) return;
    const { db, readTime } = this.#context;
    const observation = await readSnapshot(db, (transaction) => observeNetwork(transaction, network));
    const storeNow = (await readTime(db)).getTime();
    const now = this.#now();
    const announced = new Map(observation.peers.map(({ peer, health }) => [peer.id, health]));
    const peers = [...due].flatMap(([peer, loss]) => {
      const health = announced.get(peer);
      const isBack = loss !== null && loss.requests !== this.#presence.requestsOf(peer);
      return health?.announced !== 'online' || isBack ? [] : [{ peer, health, lostAt: loss?.at ?? now }];
    });
    const lost = new Set(peers.map(({ peer }) => peer));
    const reported = observation.peers.map(({ peer: { id }, report }) => ({ id, paths: readPaths(report) }));
    const questions = chooseWitnesses(
      reported.filter(({ id }) => lost.has(id)),
      findCandidates(observation, lost, storeNow),
      mostProbed,
      (below) => randomInt(below),
    );
    const asked = peers.filter(({ peer }) => [...questions.values()].some((some) => some.includes(peer)));
    for (const each of peers) if (!asked.includes(each)) this.#retry(network, each.peer, due.get(each.peer) ?? null);
    if (asked.length === 0) return;
    await transact(db, async (transaction) => {
      for (const { peer, health, lostAt } of asked.toSorted((one, other) => one.peer - other.peer)) {
        // A reply since the stored loss of the connection still counts.
        if (lostAtOf(health) !== null) continue;
        await savePeerHealth(transaction, peer, { lost_at: new Date(storeNow - (now - lostAt)).toISOString() });
      }
    });
    for (const { peer, lostAt } of asked) {
      this.#askedAt.set(peer, performance.now());
      this.#presence.expect(peer, lostAt);
    }
    const messages = [...questions].map(
      ([witness, some]): Addressed => [witness, { kind: 'probe', data: { peers: [...some] } }],
    );
    await this.#messages.send(network, messages);
    const oldest = performance.now() - this.#options.repeatMs;
    for (const [peer, at] of this.#askedAt) if (at < oldest) this.#askedAt.delete(peer);
  }

  /** Milliseconds since the last probe request for a peer; infinite for none. */
  #askedAgo(peer: number): number {
    return performance.now() - (this.#askedAt.get(peer) ?? Number.NEGATIVE_INFINITY);
  }

  #now(): number {
    return this.#context.steadyNow();
  }
}

function setTimer(following: FollowedNetwork, ms: number, work: () => void): void {
  clearTimeout(following.timer);
  following.timer = setTimeout(work, ms);
  following.timer.unref();
}

/** Hosts whose connection works, as far as the database shows. */
function findCandidates({ peers }: Observation, lost: ReadonlySet<number>, now: number) {
  const isInTouch = (health: StoredHealth | undefined) =>
    health?.last_seen != null && now - Date.parse(health.last_seen) <= inTouchMs && lostAtOf(health) === null;
  return peers
    .filter(({ peer, health }) => !lost.has(peer.id) && isInTouch(health))
    .map(({ peer, report }) => ({ id: peer.id, paths: readPaths(report) }));
}

function readPaths({ paths }: Observation['peers'][number]['report']): ReadonlyMap<number, PathState> {
  return new Map(paths.map(({ peer, path }) => [peer, path]));
}
