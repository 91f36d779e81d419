import type { HostEvent, Watch } from '../../host/host.ts';
import type { Supervisor } from '../../host/supervisor.ts';
import type { State } from '../../store/state/state.ts';
import { finishLeaving } from '../networks/former-networks.ts';
import { defaultConfirmMs } from '../reconcile/pass.ts';
import { defaultHoldSeconds } from '../reconcile/refresh.ts';
import { isJoined } from '../select.ts';
import type { Tools } from '../tools.ts';
import { CoalescingTimer, withJitter } from './coalescing.ts';
import { LoopHealth } from './loop-health.ts';
import { countCalls, NetworkController } from './network-controller.ts';
import { StatusReporter } from './status-reporter.ts';
import { TransitionLogger } from './transition-logger.ts';

export interface DaemonOptions {
  /** Seconds between passes, varied by up to a fifth; {@link defaultHoldSeconds} by default. */
  readonly interval?: number;
  /** Milliseconds to confirm what may cut the host off; {@link defaultConfirmMs} by default. */
  readonly confirmMs?: number;
  /** Ends the daemon; the tunnels stay up. */
  readonly signal: AbortSignal;
  /** Registers the handler of a user's request for a reload. */
  onRequest(reload: () => void): void;
  /** Receives the status of the daemon; null without a supervisor. */
  readonly supervisor?: Supervisor | null;
  /** Runs at the same time, once the daemon holds its lock, until `signal` aborts; never throws. */
  background?(signal: AbortSignal): Promise<void>;
}

/**
 * Reconciles every joined network of this host until `signal` aborts.
 *
 * @throws Locked if another daemon runs
 */
export async function runDaemon(tools: Tools, options: DaemonOptions): Promise<void> {
  await tools.host.check({ firewall: false });
  await tools.store.lockDaemon(() => new Daemon(tools, options).run());
}

/**
 * One process for all networks: starts a controller for each, and passes host events, jumps of the
 * clock and reloads to all of them.
 */
class Daemon {
  readonly #tools: Tools;
  readonly #options: DaemonOptions;
  readonly #interval: number;
  readonly #networks = new Map<string, { readonly controller: NetworkController; readonly ended: Promise<void> }>();
  readonly #watches = new Map<string, Promise<Watch>>();
  readonly #timer = new CoalescingTimer();
  readonly #transitions: TransitionLogger;
  /** The health of the search for networks that were joined or left. */
  readonly #health: LoopHealth;
  readonly #reporter: StatusReporter;
  #cleanup: Promise<void> | null = null;

  constructor(tools: Tools, options: DaemonOptions) {
    this.#tools = tools;
    this.#options = options;
    this.#interval = options.interval ?? defaultHoldSeconds;
    const messages = { begins: 'a state cannot be read', ends: 'every state can be read again' };
    this.#transitions = new TransitionLogger(tools.log, {}, messages);
    this.#health = new LoopHealth('networks', tools.monotonic);
    this.#reporter = new StatusReporter(tools, options.supervisor ?? null);
  }

  async run(): Promise<void> {
    const { signal, onRequest } = this.#options;
    const { log, host } = this.#tools;
    let stopping: Promise<void> | undefined;
    signal.addEventListener('abort', () => {
      stopping = this.#reporter.stop();
    });
    onRequest(() => this.#reload({ why: 'a user requested it' }));
    await this.#watch('links', () => host.watch((event) => this.#onEvent(event)));
    const clock = watchClock(this.#tools, signal, (seconds) => this.#reload({ why: 'the clock jumped', seconds }));
    const background = this.#options.background?.(signal);
    const beating = this.#reporter.beat(signal, () => this.#findStuck());
    log.info({ pid: process.pid }, 'started');
    this.#timer.schedule();
    for (;;) {
      await this.#timer.next(signal);
      if (signal.aborted) break;
      this.#timer.schedule(withJitter(this.#interval) * 1000);
      await this.#findNetworks();
      this.#finishLeaving();
    }
    const watches = await Promise.all(this.#watches.values());
    await Promise.all(watches.map((watch) => watch.close()));
    const controllers = [...this.#networks.values()].map(({ ended }) => ended);
    await Promise.all([clock, background, beating, stopping, this.#cleanup, ...controllers]);
    log.info({}, 'stopped; the tunnels stay up');
  }

  /** Other processes join and leave networks at any time. */
  async #findNetworks(): Promise<void> {
    const { store, host } = this.#tools;
    this.#health.begin();
    try {
      const { states, unreadable } = await store.list();
      this.#transitions.update(unreadable[0]?.error ?? null);
      if (unreadable[0]) this.#health.fail(unreadable[0].error);
      else this.#health.heal();
      const joined = states.filter(isJoined);
      // Before the watches: a watch that fails must not prevent a network from being reconciled.
      for (const { interface: link } of joined) if (!this.#networks.has(link)) this.#start(link);
      if (joined.length > 0) await this.#watch('devices', () => host.watchDevices((event) => this.#onEvent(event)));
      const { watchFirewall } = host;
      if (watchFirewall && joined.some(hasRules)) {
        await this.#watch('firewall', () => watchFirewall((event) => this.#onEvent(event)));
      }
    } catch (error) {
      this.#transitions.update(error);
      this.#health.fail(error);
    } finally {
      this.#health.end();
      this.#report();
    }
  }

  /** Does not delay the networks: an unreachable control plane takes until its deadline. */
  #finishLeaving(): void {
    this.#cleanup ??= finishLeaving(this.#tools)
      .catch((error: unknown) => this.#tools.log.error({ error: String(error) }, 'cleanup of former networks failed'))
      .finally(() => {
        this.#cleanup = null;
      });
  }

  #report(): void {
    const networks = [...this.#networks.values()].map(({ controller }) => controller.status);
    const { isSettled, problem } = this.#health.status;
    if (isSettled) this.#reporter.update(networks, problem);
  }

  /** Returns the name of a loop that no longer runs, or null. */
  #findStuck(): string | null {
    if (this.#health.isStuck(1.2 * this.#interval)) return 'networks';
    return [...this.#networks.values()].find(({ controller }) => controller.isStuck)?.controller.link ?? null;
  }

  #start(link: string): void {
    const { log, meter } = this.#tools;
    log.info({ interface: link }, 'reconciling the network');
    meter.begin(link);
    const options = { interval: this.#interval, confirmMs: this.#options.confirmMs ?? defaultConfirmMs };
    const report = () => this.#report();
    const controller = new NetworkController(countCalls(this.#tools, link), link, options, report);
    const ended = controller.run(this.#options.signal).then(() => {
      this.#networks.delete(link);
      // The interface may be of another network by now, whose event came too early.
      this.#timer.schedule();
      this.#report();
      log.info({ interface: link }, 'stopped reconciling the network');
    });
    this.#networks.set(link, { controller, ended });
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

  #onEvent(event: HostEvent): void {
    // A new interface may be that of a network that was just joined.
    if (event.kind === 'link' && !event.removed) this.#timer.schedule(100);
    for (const { controller } of this.#networks.values()) controller.onEvent(event);
  }

  #reload(facts: { readonly why: string; readonly seconds?: number }): void {
    this.#tools.log.info(facts, 'reloading');
    this.#reporter.reload();
    this.#health.startOver();
    this.#timer.schedule();
    for (const { controller } of this.#networks.values()) controller.reset();
  }
}

/** True of a connector, and of another host that forwards and has packet rules. */
function hasRules({ enrollment, receipt }: State): boolean {
  return enrollment.type === 'connector' || receipt.some(({ made }) => made === 'firewall');
}

/** Seconds between readings of the clocks, and the difference that counts as a jump. */
const clockEvery = 5;
const clockTolerance = 2;

/**
 * Calls `onJump` when the host slept, or when its clock was set: the wall clock, or the clock that
 * includes sleep, then advanced further than the clock that stops during sleep. Resolves when
 * `signal` aborts.
 */
export async function watchClock(tools: Tools, signal: AbortSignal, onJump: (seconds: number) => void): Promise<void> {
  const read = () => {
    const awake = tools.monotonic();
    return [tools.now().getTime() / 1000 - awake, tools.uptime() - awake] as const;
  };
  let [wall, boot] = read();
  while (!signal.aborted) {
    await tools.sleep(clockEvery * 1000, signal);
    const [wallNow, bootNow] = read();
    const jump = [wallNow - wall, bootNow - boot].find((seconds) => Math.abs(seconds) > clockTolerance);
    if (jump !== undefined) onJump(Math.round(jump));
    [wall, boot] = [wallNow, bootNow];
  }
}
