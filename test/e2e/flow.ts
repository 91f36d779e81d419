import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import type { Process } from '../lab/process.ts';

let flows = 0;

/** A ping without an end, which the two hosts count by its size: one connection, as long as it goes on. */
export class Flow {
  readonly #process: Process;
  readonly #from: Host;
  readonly #to: Host;
  readonly #table: string;

  private constructor(process: Process, from: Host, to: Host, table: string) {
    this.#process = process;
    this.#from = from;
    this.#to = to;
    this.#table = table;
  }

  /** Starts one, and waits until it is answered. */
  static async start(from: Host, to: Host, address: string): Promise<Flow> {
    flows += 1;
    const [size, table] = [100 + flows, `flow${flows}`];
    const counting = (hook: string) =>
      `table inet ${table} { chain c { type filter hook ${hook} priority -300; icmp type echo-request ip length ${size + 28} counter; }; }`;
    await from.exec(['nft', '-f', '-'], { input: counting('output') });
    await to.exec(['nft', '-f', '-'], { input: counting('prerouting') });
    const process = from.spawn(['ping', '-n', '-i', '0.05', '-s', String(size), address]);
    const flow = new Flow(process, from, to, table);
    await eventually(`${address} answers ${from.name}`, () => flow.#answered.length > 3);
    return flow;
  }

  get #answered(): number[] {
    return [...this.#process.output.stdout.matchAll(/icmp_seq=(\d+) ttl/g)].map(([, number]) => Number(number));
  }

  async #count(host: Host): Promise<number> {
    return Number(/packets (\d+)/.exec((await host.exec(['nft', 'list', 'table', 'inet', this.#table])).stdout)?.[1]);
  }

  /** Of the next packets, once those under way are there: how many come in of the ten or more that are sent. */
  async arriving(): Promise<number> {
    const send = async (more: number) => {
      const goal = (await this.#count(this.#from)) + more;
      await eventually('packets are sent', async () => (await this.#count(this.#from)) >= goal);
    };
    await send(2);
    const [arrived, answered] = [await this.#count(this.#to), this.#answered.length];
    await send(10);
    const [later, more] = [(await this.#count(this.#to)) - arrived, this.#answered.length - answered];
    return Math.max(later, more);
  }

  /** Ends it; returns how many packets had no answer, though a later one had. */
  async stop(): Promise<number> {
    await this.#process.stop();
    const numbers = this.#answered;
    return (numbers.at(-1) ?? 0) - (numbers[0] ?? 0) + 1 - numbers.length;
  }
}
