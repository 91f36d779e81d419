import type { Host } from '../../../test/lab/host.ts';
import type { Process } from '../../../test/lab/process.ts';

/** Milliseconds between two packets. */
const every = 5;
const port = 7000;

/** Sends numbered datagrams. Each line of its input prints the last number, and how many came. */
const program = `
const socket = require('node:dgram').createSocket('udp4');
let [sent, last, received] = [0, 0, 0];
socket.on('message', (message) => {
  last = Math.max(last, message.readUInt32BE());
  received += 1;
});
socket.on('error', () => {});
socket.bind(${port}, () => console.log('ready'));
const begun = performance.now();
setInterval(() => {
  for (; sent * ${every} < performance.now() - begun; sent += 1) {
    const message = Buffer.alloc(64);
    message.writeUInt32BE(sent + 1);
    socket.send(message, ${port}, process.argv[1], () => {});
  }
}, ${every});
process.stdin.on('data', () => console.log('at', last, received));
`;

/** Numbered packets that two hosts send to each other. */
export class NumberedFlow {
  readonly #ends: readonly Process[];
  #before: readonly Count[] = [];

  private constructor(ends: readonly Process[]) {
    this.#ends = ends;
  }

  /** @param ends each host, and the address that it sends to */
  static async start(...ends: readonly (readonly [Host, string])[]): Promise<NumberedFlow> {
    const processes = ends.map(([host, to]) => host.spawn(['node', '-e', program, to], { holdInput: true }));
    for (const process of processes) await process.waitForLine(/^ready$/);
    return new NumberedFlow(processes);
  }

  /**
   * Milliseconds of lost packets since the last mark, of each host. A packet that is on its way
   * counts for the next mark.
   */
  async mark(): Promise<number[]> {
    const counts: Count[] = [];
    for (const end of this.#ends) {
      end.writeInput('\n');
      const [, last, received] = await end.waitForLine(/^at (\d+) (\d+)$/);
      counts.push({ last: Number(last), received: Number(received) });
    }
    const lost = counts.map(({ last, received }, at) => {
      const before = this.#before[at] ?? { last, received };
      return (last - before.last - (received - before.received)) * every;
    });
    this.#before = counts;
    return lost;
  }

  async stop(): Promise<void> {
    for (const end of this.#ends) await end.stop();
  }
}

interface Count {
  readonly last: number;
  readonly received: number;
}
