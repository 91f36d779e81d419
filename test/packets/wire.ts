import { join } from 'node:path';
import type { Host } from '../lab/host.ts';
import type { Process } from '../lab/process.ts';

/** A packet on a device, or at the host itself. */
export interface OnDevice {
  readonly device: string;
  readonly bytes: Buffer;
}

interface Reply {
  readonly got?: readonly [device: string, packet: string][];
  readonly counts?: readonly [sent: number, arrived: number][];
  readonly error?: string;
}

/** Rules to load, and packets to send after that, one by one. */
export interface Exchange {
  readonly nft?: string;
  /** True to forget all connections first. */
  readonly flush?: boolean;
  readonly send?: readonly OnDevice[];
}

/** Rules to load in turn while packets are sent. */
export interface Reloading {
  readonly reload: readonly string[];
  readonly times: number;
  /** The least number of packets. */
  readonly packets: number;
  readonly send: readonly RepeatedPacket[];
}

/** A packet to send again and again, and a text in it. */
export interface RepeatedPacket extends OnDevice {
  readonly to: string;
  readonly mark: string;
  /** True to change the source port of a UDP packet of IPv4 each time. */
  readonly varies: boolean;
}

/** How often a packet was sent, and how often it arrived. */
export interface Repeated {
  readonly sent: number;
  readonly arrived: number;
}

/** Tunnel devices of a host whose other ends are in this process. */
export class Wire implements AsyncDisposable {
  readonly #process: Process;

  private constructor(process: Process) {
    this.#process = process;
  }

  static async start(host: Host, devices: readonly string[]): Promise<Wire> {
    const program = join(import.meta.dirname, 'wire.py');
    const process = host.spawn(['/usr/bin/python3', program, ...devices], { holdInput: true });
    await process.waitForLine(/^ready$/);
    return new Wire(process);
  }

  /** Returns the packets that left by a device, or that were delivered to the host. */
  async exchange({ send = [], ...rest }: Exchange): Promise<OnDevice[]> {
    const packets = send.map(({ device, bytes }) => [device, bytes.toString('base64')]);
    const { got = [] } = await this.#request({ ...rest, send: packets });
    return got.map(([device, text]) => ({ device, bytes: Buffer.from(text, 'base64') }));
  }

  /** Sends packets while rules are loaded. */
  async reload({ send, ...rest }: Reloading, timeoutMs = 30_000): Promise<Repeated[]> {
    const packets = send.map(({ device, bytes, to, mark, varies }) => [
      device,
      bytes.toString('base64'),
      to,
      mark,
      varies,
    ]);
    const { counts = [] } = await this.#request({ ...rest, send: packets }, timeoutMs);
    return counts.map(([sent, arrived]) => ({ sent, arrived }));
  }

  async #request(command: object, timeoutMs?: number): Promise<Reply> {
    this.#process.writeInput(`${JSON.stringify(command)}\n`);
    const [line = ''] = await this.#process.waitForLine(/^\{.*\}$/, timeoutMs);
    const reply: Reply = JSON.parse(line);
    if (reply.error !== undefined) throw new Error(`nft: ${reply.error}`);
    return reply;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.closeInput();
    await this.#process.endWithin(5000);
  }
}
