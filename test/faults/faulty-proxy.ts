import { join } from 'node:path';
import type { ControlPlane } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import type { Lab } from '../lab/lab.ts';
import { order } from '../lab/orders.ts';
import type { Process } from '../lab/process.ts';
import type { ProxyFault } from './proxy-fault.ts';

const port = 8787;

/** A proxy on a host of its own, through which hosts reach the control plane, and which injects faults. */
export class FaultyProxy {
  readonly host: Host;
  readonly url: string;
  readonly #process: Process;

  private constructor(host: Host, process: Process) {
    this.host = host;
    this.url = `http://${host.address}:${port}`;
    this.#process = process;
  }

  /** Starts it on the wan, without a fault, as number 1 to 9. */
  static async start(lab: Lab, controlPlane: ControlPlane, number = 1): Promise<FaultyProxy> {
    const address = `203.0.113.${number + 1}`;
    const host = await lab.addHost(`proxy-${number}`, { address: `${address}/24` });
    const program = join(import.meta.dirname, 'faulty-proxy-server.ts');
    const process = host.spawn(['node', program, address, String(port), controlPlane.url], { holdInput: true });
    await process.waitForLine(/^listening$/);
    return new FaultyProxy(host, process);
  }

  /** Injects this fault from now on, also into pending requests. */
  inject(fault: ProxyFault): Promise<void> {
    return order(this.#process, fault);
  }

  /** Ends all faults. */
  pass(): Promise<void> {
    return this.inject({ kind: 'pass' });
  }

  /** Waits for the next request, or the next such request, since the last order or the last that was waited for. */
  async awaitRequest(suits: (request: Request) => boolean = () => true, timeoutMs = 30_000): Promise<Request> {
    for (;;) {
      const request = toRequest(await this.#process.waitForLine(line, timeoutMs));
      if (suits(request)) return request;
    }
  }

  /** Every request so far; a request that is handled again counts twice. */
  get requests(): readonly Request[] {
    return this.#process.output.stdout.split('\n').flatMap((each) => {
      const match = line.exec(each);
      return match === null ? [] : [toRequest(match)];
    });
  }
}

/** A request as in the proxy's log; an absent header is `none`. */
export interface Request {
  /** The fault that was injected. */
  readonly kind: string;
  /** Method and path. */
  readonly path: string;
  /** The If-None-Match header. */
  readonly ifNoneMatch: string;
  readonly prefer: string;
}

const line = /^request (\S+) (\S+ \S+) if-none-match=(.*) prefer=(.*)$/;

function toRequest([, kind = '', path = '', known = '', prefer = '']: RegExpExecArray): Request {
  return { kind, path, ifNoneMatch: known, prefer };
}
