/**
 * Simulated hosts on one machine, for end-to-end tests and demonstrations: each has its own network, mount and PID namespace, and
 * they meet on switches. All of them live in the lab's own PID namespace, whose process 1 holds on to a pipe from the owner: whatever
 * happens to the owner, every process and the temporary folder end with it.
 *
 * @module
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Host, type PlugOptions } from './host.ts';
import { memory } from './memory.ts';
import { Namespace } from './namespace.ts';
import { Segment } from './segment.ts';
import { labPath, labSupport } from './support.ts';

/**
 * $1 is the lab's folder, which goes last. The switches have no IPv6, so that they send nothing. Hosts get a small table of TCP
 * connections of their own (Linux 6.2): the machine's, which has a bucket for each 64 KiB of memory, takes milliseconds to read.
 */
const HOLDER = `
set -e
read -r pid _ </proc/self/stat
echo 256 2>/dev/null >/proc/sys/net/ipv4/tcp_child_ehash_entries || true
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
echo "ready $pid"
while read -r _; do :; done
[ $$ -ne 1 ] || kill -KILL -1 || true
rm -rf "$1" 2>/dev/null || { sleep 0.1; rm -rf "$1"; }
`;

/** A new host's segment: the wan by default. */
export interface HostOptions extends PlugOptions {
  readonly on?: Segment;
}

/** How a lab runs the commands of the program. */
export interface LabOptions {
  /** True for a command server on each host that runs commands: it saves the start of Node. Without it, each command is a process. */
  readonly commandServers?: boolean;
  /** More for the environment of all processes. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A network behind a router. */
export interface Lan {
  readonly segment: Segment;
  readonly router: Host;
  /**
   * Adds a member. It reaches only its own network, and so answers a stranger only through masquerade, unless it is `routed`:
   * then its default route is the router.
   */
  addHost(name: string, address: string, options?: { readonly routed?: boolean }): Promise<Host>;
}

/** A running lab. `await using lab = await Lab.start()` stops it at the end of the block. */
export class Lab {
  /** The switch that stands for the internet. */
  readonly wan: Segment;
  /** The temporary folder, a folder a host. */
  readonly folder: string;
  /** The environment that all of its processes start from; `CPN_LAB`, the folder, marks them. */
  readonly env: Readonly<Record<string, string>>;
  readonly hosts = new Map<string, Host>();
  readonly #switches: Namespace;
  readonly #number: () => number;

  readonly #commandServers: boolean;

  private constructor(
    folder: string,
    env: Lab['env'],
    wan: Segment,
    switches: Namespace,
    number: () => number,
    { commandServers = false }: LabOptions,
  ) {
    this.folder = folder;
    this.env = env;
    this.wan = wan;
    this.#switches = switches;
    this.#number = number;
    this.#commandServers = commandServers;
  }

  /** Starts a lab with nothing on its wan. Fails with what the machine needs when there can be none. */
  static async start(options: LabOptions = {}): Promise<Lab> {
    const support = labSupport();
    if (!support.possible) throw new Error(`no lab on this machine: ${support.needs}`);
    const folder = await mkdtemp(join(memory, 'cpn-lab-'));
    // Passable for users other than root inside a host, who follow /etc through it; what is private has its own mode.
    await chmod(folder, 0o755);
    const { NODE_COMPILE_CACHE } = process.env;
    const env = {
      PATH: labPath(),
      LANG: 'C.UTF-8',
      CPN_LAB: folder,
      ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }),
      ...options.env,
    };
    let switches: Namespace | undefined;
    try {
      const userNamespace = support.how === 'user namespace';
      switches = await Namespace.start({ label: 'lab', script: HOLDER, args: [folder], env, userNamespace });
      let count = 0;
      const number = (): number => ++count;
      return new Lab(folder, env, await Segment.start('wan', switches, number), switches, number, options);
    } catch (error) {
      await switches?.stop();
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** Adds a host and starts it: on the wan, or on the segment `on`. */
  async addHost(name: string, { on = this.wan, ...plug }: HostOptions): Promise<Host> {
    if (this.hosts.has(name)) throw new Error(`the lab has a host ${name} already`);
    const host = new Host(name, join(this.folder, name), this.#switches, this.env, this.#commandServers);
    this.hosts.set(name, host);
    await host.start();
    await host.plug(on, plug);
    return host;
  }

  /** Adds a switch without any host. */
  addSegment(name: string): Promise<Segment> {
    return Segment.start(name, this.#switches, this.#number);
  }

  /** Puts a network behind a host, which gets `address` in it. Forwarding is unchanged: the connector turns it on. */
  addLan(router: Host, address: string): Promise<Lan> {
    return this.#addLan(router, address, false);
  }

  /** Adds a router on the wan that hides a network behind its own address, as at home: outgoing connections only. */
  async addNat(name: string, { outside, inside }: { outside: string; inside: string }): Promise<Lan> {
    const router = await this.addHost(name, { address: outside });
    const lan = await this.#addLan(router, inside, true);
    await router.exec(['sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward; exec nft -f -'], { input: NAT });
    return lan;
  }

  /** Kills everything in it and removes its folder. */
  async stop(): Promise<void> {
    await this.#switches.stop();
    await rm(this.folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #addLan(router: Host, address: string, routedByDefault: boolean): Promise<Lan> {
    const segment = await this.addSegment(`${router.name}-lan`);
    await router.plug(segment, { address });
    const gateway = address.split('/')[0];
    return {
      segment,
      router,
      addHost: (name, member, { routed = routedByDefault } = {}) =>
        this.addHost(name, { address: member, on: segment, gateway: routed ? gateway : undefined }),
    };
  }
}

const NAT = `
table ip nat {
  chain forward {
    type filter hook forward priority 0; policy drop;
    iifname "eth1" accept
    ct state established,related accept
  }
  chain postrouting {
    type nat hook postrouting priority 100;
    oifname "eth0" masquerade
  }
}
`;
