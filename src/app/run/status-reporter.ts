import { printable } from '../../core/errors/index.ts';
import type { Supervisor } from '../../host/supervisor.ts';
import type { Tools } from '../tools.ts';
import type { LoopStatus } from './loop-health.ts';

/** The characters that roughly fit on a line of a terminal. */
const longestStatus = 300;

/** Reports to the supervisor: ready after a pass of every network, alive while every loop runs. */
export class StatusReporter {
  readonly #tools: Pick<Tools, 'sleep' | 'log'>;
  readonly #supervisor: Supervisor | null;
  #isReady = false;
  #status: string | null = null;

  constructor(tools: Pick<Tools, 'sleep' | 'log'>, supervisor: Supervisor | null) {
    this.#tools = tools;
    this.#supervisor = supervisor;
  }

  /** Reports the status of all networks, if it changed. */
  update(networks: readonly LoopStatus[], problem: string | null): void {
    if (this.#supervisor === null) return;
    const status = describe(networks, problem);
    if (!this.#isReady && networks.every(({ isSettled }) => isSettled)) {
      this.#isReady = true;
      this.#status = status;
      void this.#supervisor.report({ state: 'ready', status });
    } else if (this.#isReady && status !== this.#status) {
      this.#status = status;
      void this.#supervisor.report({ status });
    }
  }

  /** Reports that a reload began; {@link update} reports its end. */
  reload(): void {
    if (!this.#isReady) return;
    this.#isReady = false;
    void this.#supervisor?.report({ state: 'reloading' });
  }

  /** Resolves when the supervisor received it. */
  async stop(): Promise<void> {
    await this.#supervisor?.report({ state: 'stopping', status: 'stopping; the tunnels stay up' });
  }

  /** Reports twice per supervisor's timeout that the daemon is alive, unless a loop is stuck. */
  async beat(signal: AbortSignal, findStuck: () => string | null): Promise<void> {
    const timeout = this.#supervisor?.watchdogMs ?? null;
    if (this.#supervisor === null || timeout === null) return;
    while (!signal.aborted) {
      const stuck = findStuck();
      if (stuck === null) await this.#supervisor.report({ isAlive: true });
      else this.#tools.log.error({ stuck }, 'the daemon hangs; its supervisor may restart it');
      await this.#tools.sleep(timeout / 2, signal);
    }
  }
}

function describe(networks: readonly LoopStatus[], problem: string | null): string {
  const healthy = networks.filter((each) => each.problem === null).map(({ link }) => link);
  const parts = [
    ...(healthy.length > 0 ? [`reconciling ${healthy.join(', ')}`] : []),
    ...networks.flatMap((each) => (each.problem === null ? [] : [`${each.link}: ${each.problem}`])),
    ...(problem === null ? [] : [problem]),
  ];
  const status = printable(parts.join('; ') || 'no network is joined');
  return status.length > longestStatus ? `${status.slice(0, longestStatus - 3)}...` : status;
}
