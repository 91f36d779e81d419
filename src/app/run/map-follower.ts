import type { PeerMessage } from '../../contract/network.ts';
import { type CpnError, Refused, Unreachable } from '../../core/errors/index.ts';
import { isConfirmationDue } from '../../core/map/map-age.ts';
import { type Backoff, backoffDelay, pauseFor, type RateLimit } from '../../core/util/backoff.ts';
import type { DaemonFailure } from '../../store/notes.ts';
import type { Joined } from '../../store/state/state.ts';
import { accessOf, findNoAccess, identifyMembership } from '../access.ts';
import type { Pass } from '../reconcile/pass.ts';
import { type HeldMap, refresh } from '../reconcile/refresh.ts';
import type { StateUpdate } from '../reconcile/state-update.ts';
import { isJoined } from '../select.ts';
import type { Tools } from '../tools.ts';
import { withJitter } from './coalescing.ts';
import type { PassListener } from './pass-listener.ts';
import { TransitionLogger } from './transition-logger.ts';

/** Seconds of a long poll. Debian's haproxy ends requests after 50 s, other proxies after 60 s. */
const holdSeconds = { least: 40, most: 45 };
/** The shortest hold in seconds; after gateways ended longer ones, it is not halved further. */
const shortestHold = 5;
/** Seconds until the usual hold, and deltas, are tried again. */
const retryAfterGateway = 3_600;
/**
 * The rate limit for a service that replies to long polls immediately, or whose map changes all the
 * time. Beyond it, replies are a second apart: a message never waits longer for the next request.
 */
const pace: RateLimit = { most: 10, withinMs: 10_000 };
const paceMs = 1_000;
/** The same for replies with messages: a host switches to many paths at moments that they name. */
const messagePace: RateLimit = { most: 100, withinMs: 10_000 };
/** The least milliseconds between two attempts: full jitter may be no wait at all. */
const restMs = 200;
/**
 * Milliseconds between two checks for a new membership while the service refuses this one. Another
 * process may write it at any time.
 */
const checkMs = 2_000;

/** Applies an update; resolves to whether a pass did so. */
export type ApplyUpdate = (update: StateUpdate) => Promise<boolean>;

/** Requests the map of one network repeatedly, by long polls if the service supports them. */
export class MapFollower implements PassListener {
  readonly #tools: Tools;
  readonly #link: string;
  /** Seconds. */
  readonly #interval: number;
  readonly #apply: ApplyUpdate;
  readonly #onIdle: () => Promise<void>;
  readonly #onMessages: (messages: readonly PeerMessage[]) => void;
  readonly #backoff: Backoff;
  readonly #transitions: TransitionLogger;
  #round = new AbortController();
  /** When the last replies without and with messages arrived, in milliseconds. */
  #answers: number[] = [];
  #withMessages: number[] = [];
  #failures = 0;
  /** In ISO 8601: the last success, and the first failure after it; null for none. */
  #lastSuccess: string | null = null;
  #failingSince: string | null = null;
  /** True if the control plane replied since the reset; only then a request is a long poll. */
  #hasAnswered = false;
  /** True if the service refused the last request: this host may have to join again. */
  #isRefused = false;
  /** True if there is no token, which was logged. */
  #isLocal = false;
  /** The hold in seconds that a gateway allows, and its end; null for the usual hold. */
  #shortHold: { readonly seconds: number; readonly until: number } | null = null;
  /** The hold in seconds of a long poll that a gateway may have ended; the next reply shows it. */
  #ended: number | null = null;
  /** Until when a gateway is expected to refuse deltas. */
  #wholeMapsUntil = 0;
  /** True if the whole map was requested for the nonce, which a service may lack. */
  #isNonceRequested = false;
  #heldMap: HeldMap | null = null;
  /** For the messages of the last reply; null for none. */
  #receipt: string | null = null;
  /** The control plane, the peer and the token of the last request; null before the first. */
  #identity: string | null = null;
  /** The revision in the pending request; undefined without one. */
  #polled: string | null | undefined;

  /**
   * @param onIdle called between two long polls, whose connection it may use; the second one begins
   *   when it is done
   * @param onMessages receives the service's messages; it does not delay the next request
   */
  constructor(
    tools: Tools,
    link: string,
    interval: number,
    apply: ApplyUpdate,
    onIdle = async () => {},
    onMessages: (messages: readonly PeerMessage[]) => void = () => {},
  ) {
    this.#tools = tools;
    this.#link = link;
    this.#interval = interval;
    this.#apply = apply;
    this.#onIdle = onIdle;
    this.#onMessages = onMessages;
    this.#backoff = { baseMs: 1_000, capMs: interval * 1000 };
    this.#transitions = new TransitionLogger(
      tools.log,
      { interface: link },
      { begins: 'the newest map cannot be read; the last one stays in use', ends: 'the control plane answers again' },
    );
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#tools.store.watch(this.#link, signal, () => void this.#checkState());
    while (!signal.aborted) {
      this.#round = new AbortController();
      const round = AbortSignal.any([signal, this.#round.signal]);
      await this.#rest(await this.#request(round), round);
    }
  }

  onPass({ evaluation }: Pass): void {
    if (evaluation !== null) this.#compare(evaluation.state);
  }

  /** Starts a new request: after a sleep or underlay change, a connection may be dead unnoticed. */
  reset(): void {
    this.#failures = 0;
    this.#hasAnswered = false;
    this.#shortHold = null;
    this.#ended = null;
    this.#wholeMapsUntil = 0;
    this.#isNonceRequested = false;
    this.#identity = null;
    this.#round.abort();
  }

  async #rest(milliseconds: number, round: AbortSignal): Promise<void> {
    const step = this.#isRefused ? checkMs : milliseconds;
    for (let left = milliseconds; ; left -= step) {
      await this.#tools.sleep(Math.min(left, step), round);
      if (left <= step || round.aborted) return;
      await this.#checkState();
    }
  }

  async #checkState(): Promise<void> {
    // The next request reports an unreadable state.
    const state = await this.#tools.store.read(this.#link).catch(() => null);
    if (state !== null && isJoined(state)) this.#compare(state);
  }

  /**
   * Resets if the membership or the revision changed. After another join, or a move of the control
   * plane, the request and the pause are for the former membership. After a restored state, a long
   * poll with another revision than the state's would hide changes from it.
   */
  #compare(state: Joined): void {
    const isOther = this.#identity !== null && this.#identity !== identifyMembership(state);
    const isOutdated = this.#polled !== undefined && this.#polled !== state.membership.map.revision;
    if (isOther || isOutdated) this.reset();
  }

  /** Returns the milliseconds until the next request. */
  async #request(round: AbortSignal): Promise<number> {
    const tools = this.#tools;
    try {
      const state = await tools.store.read(this.#link);
      // Another process may leave the network, and join it again, before a pass detects it.
      if (state === null || !isJoined(state)) return this.#pause();
      this.#identity = identifyMembership(state);
      if (accessOf(state) === null) {
        if (!this.#isLocal)
          tools.log.warn({ interface: this.#link, reason: findNoAccess(state)?.text }, 'the newest map cannot be read');
        this.#isLocal = true;
        return this.#pause();
      }
      this.#isLocal = false;
      const needsNonce = !this.#isNonceRequested && lacksNonce(state);
      const seconds = this.#hasAnswered && !needsNonce ? this.#nextHold() : 0;
      const wait = { seconds, signal: round, endsWithTimeout: true as const };
      const wholeMaps = tools.monotonic() < this.#wholeMapsUntil;
      const asked = { heldMap: this.#heldMap, wholeMaps, needsNonce, receipt: this.#receipt };
      const options = { holdSeconds: this.#interval, wait, ...asked };
      this.#polled = state.membership.map.revision;
      const refreshed = await refresh(tools, state, options);
      const { update, notes, waited, failure, heldMap, batch, retryAfterMs } = refreshed;
      this.#polled = undefined;
      if (needsNonce && failure === null) this.#isNonceRequested = true;
      if (failure instanceof Unreachable && failure.waitEnded) return this.#checkAfter(seconds, failure);
      this.#heldMap = heldMap;
      if (refreshed.refusesDeltas) this.#readWholeMaps();
      else if (failure === null || heldMap !== null) this.#halveHold();
      this.#ended = null;
      if (failure === null) this.#receipt = batch?.receipt ?? null;
      if (batch) this.#onMessages(batch.messages);
      this.#isRefused = failure instanceof Refused;
      if (failure instanceof Refused && this.#failures === 0 && (await this.#isLeft())) return this.#pause();
      const isNew = this.#transitions.update(failure);
      this.#hasAnswered = failure === null || heldMap !== null;
      // At the same time: the pass need not wait for the disk.
      const [isApplied] = await Promise.all([
        !hasChanges(update, state) || this.#apply(update),
        failure === null || isNew || retryAfterMs !== undefined
          ? tools.store.amendNotes(this.#link, { ...notes, daemonFailure: this.#noteFailure(failure) })
          : null,
      ]);
      if (heldMap === null) {
        // The next request confirms the deletion, and "cpn network delete" waits for that.
        if (update.deletedAt !== undefined && isApplied) return restMs;
        if (retryAfterMs !== undefined) return restMs + retryAfterMs;
        if (failure !== null || !isApplied) return this.#pauseAfter(failure);
        this.#failures = 0;
        // Without a revision nothing is awaited; only the next reply shows if the service waits.
        if (!waited && (seconds > 0 || state.membership.map.revision !== null)) return this.#pause();
        if (update.map === null && batch === undefined) await untilAborted(round, this.#onIdle());
      }
      const now = tools.monotonic() * 1000;
      if (batch !== undefined) {
        this.#withMessages = [...this.#withMessages, now].slice(-messagePace.most);
        return pauseFor(this.#withMessages, now, messagePace);
      }
      this.#answers = [...this.#answers, now].slice(-pace.most);
      return Math.min(pauseFor(this.#answers, now, pace), paceMs);
    } catch (error) {
      this.#polled = undefined;
      if (round.aborted) return 0;
      this.#transitions.update(error);
      return this.#pauseAfter(error);
    }
  }

  #noteFailure(failure: CpnError | null): DaemonFailure | null {
    const now = this.#tools.now().toISOString();
    if (failure === null) {
      this.#lastSuccess = now;
      this.#failingSince = null;
      return null;
    }
    this.#failingSince ??= now;
    return { error: failure.message, since: this.#failingSince, lastSuccess: this.#lastSuccess };
  }

  /** True if `cpn leave` caused the refusal: it holds the lock from the removal of the peer on. */
  async #isLeft(): Promise<boolean> {
    const { store } = this.#tools;
    await store.lock(async () => {}).catch(() => {});
    return (await store.read(this.#link)) === null;
  }

  /** Random seconds, so that requests of hosts do not all end together. */
  #nextHold(): number {
    const short = this.#shortHold;
    if (short !== null && this.#tools.monotonic() < short.until) return short.seconds;
    this.#shortHold = null;
    const { least, most } = holdSeconds;
    return Math.round(least + Math.random() * (most - least));
  }

  /**
   * Returns the milliseconds until the next request, which is no long poll: if it fails, the
   * control plane is reported as down; if not, a gateway ended the long poll.
   */
  #checkAfter(seconds: number, { retryAfterMs }: Unreachable): number {
    this.#hasAnswered = false;
    this.#ended = seconds;
    return restMs + (retryAfterMs ?? 0) + backoffDelay(1, this.#backoff, Math.random());
  }

  #halveHold(): void {
    if (this.#ended === null) return;
    const seconds = Math.max(shortestHold, Math.floor(this.#ended / 2));
    this.#shortHold = { seconds, until: this.#tools.monotonic() + retryAfterGateway };
    this.#tools.log.info({ interface: this.#link, seconds }, 'a gateway ended a long poll; the next ones are shorter');
  }

  #readWholeMaps(): void {
    this.#wholeMapsUntil = this.#tools.monotonic() + retryAfterGateway;
    this.#tools.log.warn({ interface: this.#link }, 'a gateway refuses deltas; whole maps are read instead');
  }

  #pause(): number {
    return withJitter(this.#interval) * 1000;
  }

  #pauseAfter(failure: unknown): number {
    this.#failures += 1;
    if (failure !== null && !(failure instanceof Unreachable)) return this.#pause();
    const requested = failure?.retryAfterMs ?? 0;
    return restMs + requested + backoffDelay(this.#failures, this.#backoff, Math.random());
  }
}

/** True for a host that joined before nonces existed. */
function lacksNonce({ features, membership }: Joined): boolean {
  return features?.includes('map-deletion') === true && membership.map.nonce === undefined;
}

/** True for another map, a deletion, or a confirmation of the map that must be saved. */
function hasChanges({ map, confirmedAt, deletedAt }: StateUpdate, state: Joined): boolean {
  return (
    map !== null || deletedAt !== undefined || (confirmedAt !== undefined && isConfirmationDue(state, confirmedAt))
  );
}

/** Resolves with the work, or earlier if `signal` aborts. */
async function untilAborted(signal: AbortSignal, work: Promise<void>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener('abort', () => resolve());
  if (!signal.aborted) await Promise.race([work, promise]);
}
