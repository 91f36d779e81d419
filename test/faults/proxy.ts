import { join } from 'node:path';
import type { ControlPlane } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import type { Lab } from '../lab/lab.ts';
import { order } from '../lab/orders.ts';
import type { Process } from '../lab/process.ts';
import type { Trouble } from './trouble.ts';

const port = 8787;

/** A proxy on a host of its own, through which hosts reach the control plane, or meet trouble. */
export class TroubledProxy {
  readonly host: Host;
  readonly url: string;
  readonly #process: Process;

  private constructor(host: Host, process: Process) {
    this.host = host;
    this.url = `http://${host.address}:${port}`;
    this.#process = process;
  }

  /** Starts it on the wan, without any trouble, as number 1 to 9. */
  static async start(lab: Lab, controlPlane: ControlPlane, number = 1): Promise<TroubledProxy> {
    const address = `203.0.113.${number + 1}`;
    const host = await lab.addHost(`proxy-${number}`, { address: `${address}/24` });
    const program = join(import.meta.dirname, 'troubled-proxy.ts');
    const process = host.spawn(['node', program, address, String(port), controlPlane.url], { holdInput: true });
    await process.waitForLine(/^listening$/);
    return new TroubledProxy(host, process);
  }

  /** Makes this trouble from now on; who waits for an answer meets it too. */
  make(trouble: Trouble): Promise<void> {
    return order(this.#process, trouble);
  }

  /** Makes an end of all trouble. */
  pass(): Promise<void> {
    return this.make({ kind: 'pass' });
  }

  /** Waits for the next request, or the next such request, since the last order or the last that was waited for. */
  async awaitRequest(suits: (request: Request) => boolean = () => true, timeoutMs = 30_000): Promise<Request> {
    for (;;) {
      const request = toRequest(await this.#process.waitForLine(line, timeoutMs));
      if (suits(request)) return request;
    }
  }

  /** Every request so far, those treated anew a second time. */
  get requests(): readonly Request[] {
    return this.#process.output.stdout.split('\n').flatMap((each) => {
      const match = line.exec(each);
      return match === null ? [] : [toRequest(match)];
    });
  }
}

/** A request, in the words of the proxy's log; what was not there is `none`. */
export interface Request {
  /** The trouble that it met. */
  readonly kind: string;
  /** Method and path. */
  readonly path: string;
  /** Its If-None-Match. */
  readonly known: string;
  readonly prefer: string;
}

const line = /^request (\S+) (\S+ \S+) if-none-match=(.*) prefer=(.*)$/;

function toRequest([, kind = '', path = '', known = '', prefer = '']: RegExpExecArray): Request {
  return { kind, path, known, prefer };
}
