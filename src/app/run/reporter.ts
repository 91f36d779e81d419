import { printable } from '../../core/errors.ts';
import type { Supervisor } from '../../host/supervisor.ts';
import type { Tools } from '../tools.ts';
import type { Standing } from './health.ts';

/** More of a status no one reads in a line. */
const longestStatus = 300;

/** Tells the supervisor how the daemon is: ready once every network had its pass, and alive only while every loop goes round. */
export class Reporter {
  readonly #tools: Tools;
  readonly #supervisor: Supervisor | null;
  #isReady = false;
  #status: string | null = null;

  constructor(tools: Tools, supervisor: Supervisor | null) {
    this.#tools = tools;
    this.#supervisor = supervisor;
  }

  /** Tells how all networks stand, if that is another thing than was told before. */
  note(standings: readonly Standing[], trouble: string | null): void {
    if (this.#supervisor === null) return;
    const status = describe(standings, trouble);
    if (!this.#isReady && standings.every(({ isSettled }) => isSettled)) {
      this.#isReady = true;
      this.#status = status;
      void this.#supervisor.tell({ state: 'ready', status });
    } else if (this.#isReady && status !== this.#status) {
      this.#status = status;
      void this.#supervisor.tell({ status });
    }
  }

  /** Everything is looked at anew; {@link note} tells when that is over. */
  reload(): void {
    if (!this.#isReady) return;
    this.#isReady = false;
    void this.#supervisor?.tell({ state: 'reloading' });
  }

  /** Resolves when it was told. */
  async stop(): Promise<void> {
    await this.#supervisor?.tell({ state: 'stopping', status: 'stopping; the tunnels stay up' });
  }

  /** Says twice within the supervisor's patience that the daemon is alive, unless `findStuck` names a loop that is not. */
  async beat(signal: AbortSignal, findStuck: () => string | null): Promise<void> {
    const patience = this.#supervisor?.patienceMs ?? null;
    if (this.#supervisor === null || patience === null) return;
    while (!signal.aborted) {
      const stuck = findStuck();
      if (stuck === null) await this.#supervisor.tell({ isAlive: true });
      else this.#tools.log.error({ stuck }, 'the daemon hangs; its supervisor may start it anew');
      await this.#tools.sleep(patience / 2, signal);
    }
  }
}

function describe(standings: readonly Standing[], trouble: string | null): string {
  const right = standings.filter((each) => each.trouble === null).map(({ link }) => link);
  const parts = [
    ...(right.length > 0 ? [`keeping ${right.join(', ')}`] : []),
    ...standings.flatMap((each) => (each.trouble === null ? [] : [`${each.link}: ${each.trouble}`])),
    ...(trouble === null ? [] : [trouble]),
  ];
  const status = printable(parts.join('; ') || 'no network is joined');
  return status.length > longestStatus ? `${status.slice(0, longestStatus - 3)}...` : status;
}
