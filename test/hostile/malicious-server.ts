import { join } from 'node:path';
import type { Host } from '../lab/host.ts';
import { order } from '../lab/orders.ts';
import type { Process } from '../lab/process.ts';

/** The reply that a malicious server sends from now on, and its receiver. */
export interface ServerOrder {
  /** The name of a malicious reply; null for true replies. */
  readonly reply: string | null;
  /** The public key of the host, as far as it is known. */
  readonly self: string;
}

/** A malicious server for one host, on another. */
export class MaliciousServer {
  readonly url: string;
  readonly #process: Process;

  private constructor(process: Process, url: string) {
    this.#process = process;
    this.url = url;
  }

  static async start(host: Host, port: number): Promise<MaliciousServer> {
    const program = join(import.meta.dirname, 'malicious-server-program.ts');
    const process = host.spawn(['node', program, host.address, String(port)], { holdInput: true });
    await process.waitForLine(/^listening$/);
    return new MaliciousServer(process, `http://${host.address}:${port}`);
  }

  /** Sends this reply, or true ones, from now on. */
  send(reply: string | null, self: string): Promise<void> {
    const orders: ServerOrder = { reply, self };
    return order(this.#process, orders);
  }

  /** How many malicious replies it has sent. */
  get sent(): number {
    return this.#process.output.stdout.match(/^sent /gm)?.length ?? 0;
  }
}
