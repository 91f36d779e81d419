import { join } from 'node:path';
import type { Host } from '../lab/host.ts';
import { order } from '../lab/orders.ts';
import type { Process } from '../lab/process.ts';

/** What a lying server is to say from now on, and to whom. */
export interface LiarOrder {
  /** The name of a lie; null for the truth. */
  readonly lie: string | null;
  /** The public key of the host that asks, as far as it is known. */
  readonly self: string;
}

/** A lying server for one host, on another. */
export class Liar {
  readonly url: string;
  readonly #process: Process;

  private constructor(process: Process, url: string) {
    this.#process = process;
    this.url = url;
  }

  static async start(host: Host, port: number): Promise<Liar> {
    const program = join(import.meta.dirname, 'lying-server.ts');
    const process = host.spawn(['node', program, host.address, String(port)], { holdInput: true });
    await process.waitForLine(/^listening$/);
    return new Liar(process, `http://${host.address}:${port}`);
  }

  /** Tells this lie, or the truth, from now on. */
  tell(lie: string | null, self: string): Promise<void> {
    const orders: LiarOrder = { lie, self };
    return order(this.#process, orders);
  }

  /** How often it lied so far. */
  get told(): number {
    return this.#process.output.stdout.match(/^told /gm)?.length ?? 0;
  }
}
