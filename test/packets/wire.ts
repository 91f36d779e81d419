import { join } from 'node:path';
import type { Host } from '../lab/host.ts';
import type { Process } from '../lab/process.ts';

/** A packet on a device, or at the host itself. */
export interface OnDevice {
  readonly device: string;
  readonly bytes: Buffer;
}

/** Rules to load, and packets to send after that, one by one. */
export interface Exchange {
  readonly nft?: string;
  /** True to forget all connections first. */
  readonly flush?: boolean;
  readonly send?: readonly OnDevice[];
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
    this.#process.writeInput(`${JSON.stringify({ ...rest, send: packets })}\n`);
    const [line = ''] = await this.#process.waitForLine(/^\{.*\}$/);
    const { got, error } = JSON.parse(line) as { got: [string, string][]; error?: string };
    if (error !== undefined) throw new Error(`nft: ${error}`);
    return got.map(([device, text]) => ({ device, bytes: Buffer.from(text, 'base64') }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.closeInput();
    await this.#process.endWithin(5000);
  }
}
