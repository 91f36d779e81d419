import { type Backoff, backoffDelay } from '../../core/backoff.ts';
import { Refused, Unreachable } from '../../core/errors.ts';
import { type Pace, pauseFor } from '../../core/pace.ts';
import type { Joined } from '../../store/state.ts';
import { accessOf, explainLocal } from '../access.ts';
import type { News } from '../news.ts';
import { type Doubt, refresh } from '../refresh.ts';
import { isJoined } from '../select.ts';
import type { Tools } from '../tools.ts';
import { spread } from './interval.ts';
import { Once } from './once.ts';

/** Seconds that a service is asked to hold its answer back: below the minute after which common proxies give up. */
const holdSeconds = 50;
/** A service that answers at once, though it could wait, is asked no more often than this. */
const pace: Pace = { most: 10, withinMs: 10_000 };
/** Milliseconds between two tries, at the least: full jitter alone may be no wait at all. */
const restMs = 200;
/** Milliseconds between two looks for a new membership, while the service refuses this one: another process may write it at any time. */
const lookMs = 2_000;

/** Takes news over; resolves, once they were acted on, to whether they were taken. */
export type TakeNews = (news: News) => Promise<boolean>;

/** Asks the control plane of one network for its map, again and again: once for each change where the service can wait. */
export class MapFollower {
  readonly #tools: Tools;
  readonly #link: string;
  /** Seconds. */
  readonly #interval: number;
  readonly #backoff: Backoff;
  readonly #once: Once;
  #round = new AbortController();
  /** When answers came lately, in milliseconds. */
  #answers: number[] = [];
  #failures = 0;
  /** Whether anything is known of how the control plane is now; until then it is not asked to wait. */
  #isHeard = false;
  /** The service refused the last question: this host may have to join again. */
  #isRefused = false;
  /** There is nothing to ask with, which was said. */
  #isLocal = false;
  /** The map that waits for a second answer which says the same. */
  #doubt: Doubt | null = null;
  /** The peer and the token of the last question; null before the first. */
  #asker: string | null = null;

  constructor(tools: Tools, link: string, interval: number) {
    this.#tools = tools;
    this.#link = link;
    this.#interval = interval;
    this.#backoff = { baseMs: 1_000, capMs: interval * 1000 };
    this.#once = new Once(
      tools.log,
      { interface: link },
      { begins: 'the newest map cannot be read; going by the last one', ends: 'the control plane answers again' },
    );
  }

  /** Hands on what is new, until `signal` aborts. */
  async follow(signal: AbortSignal, takeNews: TakeNews): Promise<void> {
    while (!signal.aborted) {
      this.#round = new AbortController();
      const round = AbortSignal.any([signal, this.#round.signal]);
      await this.#rest(await this.#ask(round, takeNews), round);
    }
  }

  /** Asks anew at once where the host has joined again since the last question: what pause was under way is of the former membership. */
  note(state: Joined): void {
    if (this.#asker !== null && this.#asker !== nameAsker(state)) this.restart();
  }

  /** Asks anew at once: a connection from before a change of network, or a sleep, may be dead without a word. */
  restart(): void {
    this.#failures = 0;
    this.#isHeard = false;
    this.#asker = null;
    this.#round.abort();
  }

  async #rest(milliseconds: number, round: AbortSignal): Promise<void> {
    const step = this.#isRefused ? lookMs : milliseconds;
    for (let left = milliseconds; ; left -= step) {
      await this.#tools.sleep(Math.min(left, step), round);
      if (left <= step || round.aborted) return;
      // A state that cannot be read is for the next question to tell.
      const state = await this.#tools.store.read(this.#link).catch(() => null);
      if (state !== null && isJoined(state)) this.note(state);
    }
  }

  /** Milliseconds to wait before the next time. */
  async #ask(round: AbortSignal, takeNews: TakeNews): Promise<number> {
    const tools = this.#tools;
    try {
      const state = await tools.store.read(this.#link);
      // A network that was left may be joined again, by another process, before anybody noticed.
      if (state === null || !isJoined(state)) return this.#pause();
      this.#asker = nameAsker(state);
      if (accessOf(state) === null) {
        if (!this.#isLocal)
          tools.log.warn({ interface: this.#link, reason: explainLocal(state) }, 'the newest map cannot be read');
        this.#isLocal = true;
        return this.#pause();
      }
      this.#isLocal = false;
      const seconds = this.#isHeard ? holdSeconds : 0;
      const options = { interval: this.#interval, wait: { seconds, signal: round }, doubt: this.#doubt };
      const { news, notes, waited, failure, doubt } = await refresh(tools, state, options);
      this.#doubt = doubt;
      this.#isRefused = failure instanceof Refused;
      if (failure instanceof Refused && this.#failures === 0 && (await this.#isLeft())) return this.#pause();
      const isNew = this.#once.notice(failure);
      this.#isHeard = failure === null || doubt !== null;
      // Beside the pass, which need not wait for the disk.
      const [isTaken] = await Promise.all([
        failure !== null || news.map === null || takeNews(news),
        failure === null || isNew ? tools.store.amendNotes(this.#link, notes) : null,
      ]);
      if (doubt === null) {
        if (failure !== null || !isTaken) return this.#pauseAfter(failure);
        this.#failures = 0;
        if (!waited) return this.#pause();
      }
      const now = tools.monotonic() * 1000;
      this.#answers = [...this.#answers, now].slice(-pace.most);
      return pauseFor(this.#answers, now, pace);
    } catch (error) {
      if (round.aborted) return 0;
      this.#once.notice(error);
      return this.#pauseAfter(error);
    }
  }

  /** Whether the refusal is the echo of a leave, which holds the lock from the peer's removal until its state is gone. */
  async #isLeft(): Promise<boolean> {
    const { store } = this.#tools;
    await store.lock(async () => {}).catch(() => {});
    return (await store.read(this.#link)) === null;
  }

  #pause(): number {
    return spread(this.#interval) * 1000;
  }

  #pauseAfter(failure: unknown): number {
    this.#failures += 1;
    if (failure !== null && !(failure instanceof Unreachable)) return this.#pause();
    const asked = failure?.retryAfterMs ?? 0;
    return restMs + asked + backoffDelay(this.#failures, this.#backoff, Math.random());
  }
}

/** Peer and token of a membership in one word, which is never shown. */
function nameAsker(state: Joined): string {
  return JSON.stringify([state.membership.peer.id, accessOf(state)?.token.reveal() ?? null]);
}
