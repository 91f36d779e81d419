import type { HostEvent, Watch } from '../../host/host.ts';
import type { Supervisor } from '../../host/supervisor.ts';
import type { State } from '../../store/state.ts';
import { usualConfirmation } from '../pass.ts';
import { usualInterval } from '../refresh.ts';
import { isJoined } from '../select.ts';
import type { Tools } from '../tools.ts';
import { Bell } from './bell.ts';
import { countCalls } from './count-calls.ts';
import { Health } from './health.ts';
import { spread } from './interval.ts';
import { Keeper } from './keeper.ts';
import { Once } from './once.ts';
import { Reporter } from './reporter.ts';
import { watchClock } from './watch-clock.ts';

export interface RunOptions {
  /** Seconds between two passes that nothing else asked for, give or take a fifth; {@link usualInterval} unless told. */
  readonly interval?: number;
  /** Milliseconds within which a change that could cut the host off is confirmed; {@link usualConfirmation} unless told. */
  readonly confirmMs?: number;
  /** Ends it; the tunnels stay up. */
  readonly signal: AbortSignal;
  /** Calls `startOver` whenever somebody asks for everything to be looked at anew. */
  onRequest(startOver: () => void): void;
  /** Whoever wants to know how it is; null for nobody. */
  readonly supervisor?: Supervisor | null;
  /** What goes on beside it, once no other one runs, until `signal` aborts; never throws. */
  beside?(signal: AbortSignal): Promise<void>;
}

/** Keeps every joined network of this host right until it is told to stop. @throws Locked when another one runs already */
export async function runDaemon(tools: Tools, options: RunOptions): Promise<void> {
  await tools.host.check({ firewall: false });
  await tools.store.claim(() => new Daemon(tools, options).run());
}

/** One process for all networks: it starts and stops their keepers, and hands on what concerns all of them. */
class Daemon {
  readonly #tools: Tools;
  readonly #options: RunOptions;
  readonly #interval: number;
  readonly #keepers = new Map<string, { readonly keeper: Keeper; readonly kept: Promise<void> }>();
  readonly #watches = new Map<string, Promise<Watch>>();
  readonly #bell = new Bell();
  readonly #once: Once;
  /** Of the search for networks, which come and go. */
  readonly #health: Health;
  readonly #reporter: Reporter;

  constructor(tools: Tools, options: RunOptions) {
    this.#tools = tools;
    this.#options = options;
    this.#interval = options.interval ?? usualInterval;
    this.#once = new Once(tools.log, {}, { begins: 'a state cannot be read', ends: 'every state can be read again' });
    this.#health = new Health('networks', tools.monotonic);
    this.#reporter = new Reporter(tools, options.supervisor ?? null);
  }

  async run(): Promise<void> {
    const { signal, onRequest } = this.#options;
    const { log } = this.#tools;
    let stopping: Promise<void> | undefined;
    signal.addEventListener('abort', () => {
      stopping = this.#reporter.stop();
      this.#bell.ring();
    });
    onRequest(() => this.#startOver({ why: 'somebody asked for it' }));
    await this.#watch('links', () => this.#tools.host.watch((event) => this.#hear(event)));
    const clock = watchClock(this.#tools, signal, (seconds) => this.#startOver({ why: 'the clock jumped', seconds }));
    const beside = this.#options.beside?.(signal);
    const beating = this.#reporter.beat(signal, () => this.#findStuck());
    log.info({ pid: process.pid }, 'started');
    this.#bell.ring();
    while (!signal.aborted) {
      await this.#bell.rung();
      if (signal.aborted) break;
      this.#bell.ring(spread(this.#interval) * 1000);
      await this.#startKeepers();
    }
    this.#bell.silence();
    const watches = await Promise.all(this.#watches.values());
    await Promise.all(watches.map((watch) => watch.close()));
    await Promise.all([clock, beside, beating, stopping, ...[...this.#keepers.values()].map(({ kept }) => kept)]);
    log.info({}, 'stopped; the tunnels stay up');
  }

  /** Networks are joined and left by other processes, at any time. */
  async #startKeepers(): Promise<void> {
    this.#health.begin();
    try {
      const { states, unreadable } = await this.#tools.store.list();
      this.#once.notice(unreadable[0]?.error ?? null);
      if (unreadable[0]) this.#health.fail(unreadable[0].error);
      else this.#health.heal();
      const joined = states.filter(isJoined);
      // First: that one thing cannot be watched keeps no network from being kept right.
      for (const { interface: link } of joined) if (!this.#keepers.has(link)) this.#start(link);
      if (joined.length > 0) {
        await this.#watch('devices', () => this.#tools.host.watchDevices((event) => this.#hear(event)));
      }
      if (joined.some(hasRules)) {
        await this.#watch('firewall', () => this.#tools.host.watchFirewall((event) => this.#hear(event)));
      }
    } catch (error) {
      this.#once.notice(error);
      this.#health.fail(error);
    } finally {
      this.#health.end();
      this.#report();
    }
  }

  #report(): void {
    const standings = [...this.#keepers.values()].map(({ keeper }) => keeper.standing);
    const { isSettled, trouble } = this.#health.standing;
    if (isSettled) this.#reporter.note(standings, trouble);
  }

  /** The loop that does not go round any more; null when all of them do. */
  #findStuck(): string | null {
    if (this.#health.isStuck(1.2 * this.#interval)) return 'networks';
    return [...this.#keepers.values()].find(({ keeper }) => keeper.isStuck)?.keeper.link ?? null;
  }

  #start(link: string): void {
    this.#tools.log.info({ interface: link }, 'keeping the network');
    this.#tools.meter.begin(link);
    const keeper = new Keeper(
      countCalls(this.#tools, link),
      link,
      {
        interval: this.#interval,
        confirmMs: this.#options.confirmMs ?? usualConfirmation,
      },
      () => this.#report(),
    );
    const kept = keeper.keep(this.#options.signal).then(() => {
      this.#keepers.delete(link);
      this.#report();
      this.#tools.log.info({ interface: link }, 'keeping the network no more');
    });
    this.#keepers.set(link, { keeper, kept });
  }

  async #watch(name: string, open: () => Promise<Watch>): Promise<void> {
    if (this.#watches.has(name)) return;
    const watch = open();
    this.#watches.set(name, watch);
    await watch.catch((error) => {
      this.#watches.delete(name);
      throw error;
    });
  }

  #hear(event: HostEvent): void {
    // An interface that comes may be that of a network just joined.
    if (event.kind === 'link' && !event.removed) this.#bell.ring(100);
    for (const { keeper } of this.#keepers.values()) keeper.hear(event);
  }

  #startOver(facts: { readonly why: string; readonly seconds?: number }): void {
    this.#tools.log.info(facts, 'looking at everything anew');
    this.#reporter.reload();
    this.#health.startOver();
    this.#bell.ring();
    for (const { keeper } of this.#keepers.values()) keeper.startOver();
  }
}

/** True of a connector, and of another host that forwards and has been given packet rules. */
function hasRules({ enrollment, receipt }: State): boolean {
  return enrollment.type === 'connector' || receipt.some(({ made }) => made === 'firewall');
}
