/**
 * A lab with an internet and networks behind routers with NAT. `addRouter` puts a network behind another one: double NAT is a router
 * behind a router, carrier-grade NAT several routers behind one.
 *
 * @module
 */
import type { Host } from '../host.ts';
import { Lab, type LabOptions } from '../lab.ts';
import { joinSegments } from './delay-line.ts';
import type { Nat } from './nat.ts';
import { type Network, Router } from './router.ts';

/** A host, and the network that it is in. */
export interface Site {
  readonly host: Host;
  readonly network: Network;
}

/** `await using nat = await NatLab.start()` stops it at the end of the block. */
export class NatLab implements AsyncDisposable {
  readonly lab: Lab;
  /** The internet: 203.0.113.0/24 and 2001:db8::/64. A test gives away the addresses up to 203.0.113.9 itself. */
  readonly internet: Network;
  /** The same internet, but packets between there and the rest take a while. */
  readonly far: Network;

  private constructor(lab: Lab, internet: Network, far: Network) {
    this.lab = lab;
    this.internet = internet;
    this.far = far;
  }

  /** @param options.delayMs how long a packet takes between `internet` and `far`, one way */
  static async start({ delayMs = 25, ...options }: LabOptions & { readonly delayMs?: number } = {}): Promise<NatLab> {
    const lab = await Lab.start(options);
    try {
      let last = 9;
      const assign = () => {
        last += 1;
        return { address: [`203.0.113.${last}/24`, `2001:db8::${last}/64`] };
      };
      const segment = await lab.addSegment('far');
      await joinSegments(lab, [lab.wan, segment], delayMs);
      return new NatLab(lab, { segment: lab.wan, routers: [], assign }, { segment, routers: [], assign });
    } catch (error) {
      await lab.stop();
      throw error;
    }
  }

  /** Adds a router, and the network behind it, whose addresses begin with `inside`. */
  async addRouter(name: string, nat: Nat, outside: Network = this.internet, inside = '192.168.1.'): Promise<Router> {
    const plug = outside.assign();
    const host = await this.lab.addHost(name, { ...plug, on: outside.segment });
    const router = new Router(host, nat, outside, plug, await this.lab.addSegment(name), inside);
    await router.start();
    return router;
  }

  /** Adds a host to a network. */
  async addHost(name: string, network: Network): Promise<Site> {
    return { host: await this.lab.addHost(name, { ...network.assign(), on: network.segment }), network };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.lab.stop();
  }
}
