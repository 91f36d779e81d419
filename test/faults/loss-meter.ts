import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import type { Process } from '../lab/process.ts';

/** What was sent through a tunnel, and did not come back. */
export interface Losses {
  readonly sent: number;
  readonly lost: number;
}

const everySeconds = 0.05;

/** Pings through a tunnel, and counts the losses. `await using flow = await LossMeter.start(…)` ends it where its test fails. */
export class LossMeter {
  readonly #ping: Process;

  private constructor(ping: Process) {
    this.#ping = ping;
  }

  /** Starts to ping, and waits for the first reply: from then on the tunnel works. */
  static async start(from: Host, address: string): Promise<LossMeter> {
    const meter = new LossMeter(from.spawn(['ping', '-n', '-i', String(everySeconds), address]));
    await eventually(`a reply from ${address}`, () => meter.#received().length > 0, { timeoutMs: 60_000 });
    return meter;
  }

  /**
   * Ends it, and counts from the first reply on. One more reply is waited for, so that what is under way does not count as lost;
   * where none comes, all that was sent counts.
   */
  async stop(): Promise<Losses> {
    const before = this.#received().length;
    const replied = () => this.#received().length > before;
    const alive = await eventually('a reply', replied, { timeoutMs: 5000 }).catch(() => false);
    this.#ping.signal('SIGINT');
    const { stdout } = await this.#ping.endWithin(5000);
    const received = this.#received();
    const last = alive ? Math.max(...received) : Number(/(\d+) packets transmitted/.exec(stdout)?.[1] ?? 0);
    const sent = last - Math.min(...received) + 1;
    return { sent, lost: sent - received.length };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#ping.stop();
  }

  /** The numbers of the packets that came back, once each. */
  #received(): number[] {
    const replies = this.#ping.output.stdout.matchAll(/ icmp_seq=(\d+) ttl=/g);
    return [...new Set([...replies].map(([, number]) => Number(number)))];
  }
}
