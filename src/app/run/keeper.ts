import { backoffDelay } from '../../core/backoff.ts';
import type { Change } from '../../core/change.ts';
import { type CpnError, NotConfirmed, NotConverged } from '../../core/errors.ts';
import type { Resolved } from '../../core/resolved.ts';
import type { HostEvent } from '../../host/host.ts';
import { findUnloaded, withoutRules } from '../apply.ts';
import type { News } from '../news.ts';
import { type Pass, passNetwork } from '../pass.ts';
import type { Survey } from '../survey.ts';
import type { Tools } from '../tools.ts';
import { Bell } from './bell.ts';
import { countPass } from './count-pass.ts';
import { DriftWatch } from './drift-watch.ts';
import { FeatureWatch } from './feature-watch.ts';
import { MapFollower } from './follow-map.ts';
import { NameFollower } from './follow-names.ts';
import { Health, type Standing } from './health.ts';
import { Inbox } from './inbox.ts';
import { spread } from './interval.ts';
import { NetworkWatch } from './network-watch.ts';
import { Once } from './once.ts';
import { PlaceWatch } from './place-watch.ts';
import { tellPass } from './tell-pass.ts';

/** Milliseconds in which events that come together are one; those of other interfaces are in less of a hurry. */
const gather = 100;
const gatherOthers = 2_000;
/** Milliseconds between two passes that events ask for, at the least. */
const rest = 500;

/** What a person may set. */
export interface KeeperOptions {
  /** Seconds between two passes that nothing else asked for, give or take a fifth. */
  readonly interval: number;
  /** Milliseconds within which a change that could cut the host off is confirmed, or taken back. */
  readonly confirmMs: number;
}

/** Keeps one network of this host right: all that starts a pass over it, and one pass at a time. */
export class Keeper {
  readonly link: string;
  readonly #tools: Tools;
  readonly #options: KeeperOptions;
  readonly #bell = new Bell();
  readonly #map: MapFollower;
  readonly #features: FeatureWatch;
  readonly #names: NameFollower;
  readonly #drift: DriftWatch;
  readonly #watch: NetworkWatch;
  readonly #place = new PlaceWatch();
  readonly #inbox = new Inbox();
  readonly #once: Once;
  readonly #health: Health;
  readonly #onPass: () => void;
  #resolved: Resolved | null = null;
  #failures = 0;
  /** When the last pass ended, in milliseconds of performance.now(). */
  #passedAt = Number.NEGATIVE_INFINITY;

  /** @param onPass is called after each pass */
  constructor(tools: Tools, link: string, options: KeeperOptions, onPass: () => void = () => {}) {
    const { interval } = options;
    this.link = link;
    this.#tools = tools;
    this.#options = options;
    this.#map = new MapFollower(tools, link, interval);
    this.#features = new FeatureWatch(tools, link, () => this.#map.restart());
    this.#names = new NameFollower(tools, interval);
    this.#drift = new DriftWatch(tools, link);
    this.#watch = new NetworkWatch(tools, link, options, () => this.#bell.ring());
    const trouble = { begins: 'the network could not be made right', ends: 'the network is right again' };
    this.#once = new Once(tools.log, { interface: link }, trouble);
    this.#health = new Health(link, tools.monotonic);
    this.#onPass = onPass;
  }

  /** Keeps it until `signal` aborts, or until the network is not joined any more. */
  async keep(signal: AbortSignal): Promise<void> {
    const ending = new AbortController();
    const ended = AbortSignal.any([signal, ending.signal]);
    ended.addEventListener('abort', () => this.#bell.ring());
    // After the end nobody is left to take news over.
    const following = this.#map.follow(ended, async (news) => !ended.aborted && this.#take(news));
    const describing = this.#features.watch(ended);
    const watching = this.#watch.watch(ended);
    this.#bell.ring();
    for (;;) {
      await this.#bell.rung();
      if (ended.aborted) break;
      this.#bell.ring(spread(this.#options.interval) * 1000);
      if (!(await this.#pass(ended))) ending.abort();
    }
    this.#bell.silence();
    this.#inbox.take().settle(false);
    await Promise.all([following, describing, watching]);
  }

  get standing(): Standing {
    return this.#health.standing;
  }

  /** True when its passes do not go on any more. */
  get isStuck(): boolean {
    // The bell is never set further ahead than spread() says.
    return this.#health.isStuck(1.2 * this.#options.interval);
  }

  /** Something changed on this host that may be of this network: looks soon. */
  hear(event: HostEvent): void {
    const { link } = event;
    this.#watch.hear(event);
    const rested = this.#passedAt + rest - performance.now();
    this.#bell.ring(Math.max(rested, link === null || link === this.link ? gather : gatherOthers));
  }

  /** The host slept, or somebody asks for it: nothing known of the outside holds any more. */
  startOver(): void {
    this.#health.startOver();
    this.#names.forget();
    this.#map.restart();
    this.#watch.forget();
    this.#bell.ring();
  }

  #take(news: News): Promise<boolean> {
    const taken = this.#inbox.put(news);
    this.#bell.ring();
    return taken;
  }

  /** False when the network is not joined any more. */
  async #pass(signal: AbortSignal): Promise<boolean> {
    const { news: told, settle } = this.#inbox.take();
    const resolved = { ...told.resolved, ...this.#resolved };
    this.#resolved = null;
    let isTaken = false;
    this.#health.begin();
    const begun = this.#tools.monotonic();
    const spent = () => this.#tools.monotonic() - begun;
    try {
      const news = { ...told, resolved, failed: this.#watch.failed, pathMtu: this.#watch.pathMtu };
      const mayRepair = (drift: readonly Change[]) => this.#mayRepair(drift);
      const options = { withinMs: this.#options.confirmMs, signal, mayRepair };
      const made = await passNetwork(this.#tools, this.link, news, options);
      if (made === null) return false;
      const unloaded = made.survey && (await findUnloaded(this.#tools, made.survey));
      const pass = { ...made, changes: withoutRules(made.changes, unloaded) };
      countPass(this.#tools.meter, this.link, pass, spent());
      await this.#conclude(pass, unloaded);
      isTaken = true;
      if (unloaded) this.#fail(unloaded);
    } catch (error) {
      this.#fail(error);
      this.#tools.meter.passed(this.link, 'failed', spent());
      if (error instanceof NotConverged) await this.#drift.noteUndone();
      if (error instanceof NotConfirmed) await this.#drift.holdBack(error.message);
    } finally {
      this.#passedAt = performance.now();
      this.#health.end();
      this.#onPass();
      settle(isTaken);
    }
    return true;
  }

  /** Tells it, and tries again, later each time. */
  #fail(error: unknown): void {
    this.#once.notice(error);
    this.#health.fail(error);
    this.#failures += 1;
    const backoff = { baseMs: 1_000, capMs: this.#options.interval * 1000 };
    this.#bell.ring(gather + backoffDelay(this.#failures, backoff, Math.random()));
  }

  #mayRepair(drift: readonly Change[]): boolean {
    const pause = this.#drift.pauseBefore(drift);
    if (pause > 0) this.#bell.ring(pause * 1000);
    return pause === 0;
  }

  /** @param unloaded what keeps the packet rules from being loaded */
  async #conclude(pass: Pass, unloaded: CpnError | null): Promise<void> {
    const { survey, changes, isDrift } = pass;
    const isPostponed = survey !== null && changes.length < survey.changes.length;
    if (!isPostponed && unloaded === null) {
      this.#failures = 0;
      this.#health.heal();
      this.#once.notice(null);
    }
    tellPass(this.#tools.log, this.link, pass);
    await this.#drift.note(isDrift ? changes : [], isPostponed);
    await this.#watch.note(pass);
    if (survey === null) return;
    this.#map.note(survey.state);
    if (this.#place.hasChanged(survey.actual.surroundings)) this.startOver();
    void this.#followNames(survey);
  }

  /** Beside the passes: a resolver that does not answer must not hold them up. */
  async #followNames(seen: Survey): Promise<void> {
    try {
      const resolved = await this.#names.follow(seen);
      if (resolved === null) return;
      this.#resolved = resolved;
      this.#bell.ring();
    } catch (error) {
      this.#once.notice(error);
    }
  }
}
