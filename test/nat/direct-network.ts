import { type ControlPlane, type Joined, joinHost, startControlPlane } from '../lab/control-plane.ts';
import { Daemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { NatLab } from '../lab/nat/nat-lab.ts';

/** Two hosts, the first of which sends to the second. */
export type HostPair = readonly [Host, Host];

/** The network `office` in a lab with NAT: a control plane, connectors in the internet, and hosts, each with the daemon. */
export class DirectNetwork implements AsyncDisposable {
  readonly nat: NatLab;
  readonly controlPlane: ControlPlane;
  readonly daemons = new Map<Host, Daemon>();
  readonly #joined = new Map<Host, Joined>();

  private constructor(nat: NatLab, controlPlane: ControlPlane) {
    this.nat = nat;
    this.controlPlane = controlPlane;
  }

  /** Starts the network with its first connectors. */
  static async start(connectors = 1): Promise<DirectNetwork> {
    const nat = await NatLab.start({ commandServers: true, env: { CPN_LOG_LEVEL: 'debug' } });
    try {
      const controlPlane = await startControlPlane(nat.lab);
      await controlPlane.cpn(['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/24']);
      const network = new DirectNetwork(nat, controlPlane);
      for (let number = 1; number <= connectors; number += 1) await network.#addConnector(number);
      return network;
    } catch (error) {
      await nat[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Joins one host with more flags, and starts its daemon. */
  async joinWith(host: Host, ...flags: readonly string[]): Promise<void> {
    await this.#join(host, ['--type', 'admin_device', ...flags]);
  }

  /** Joins hosts and starts their daemons. */
  async join(...hosts: readonly Host[]): Promise<void> {
    await Promise.all(hosts.map((host) => this.#join(host, ['--type', 'admin_device'])));
  }

  /** Joins a host by another URL, such as that of a proxy. */
  async joinAt(url: string, host: Host): Promise<void> {
    await this.#join(host, ['--type', 'admin_device'], url);
  }

  /** The address of a host in the network. */
  address(host: Host): string {
    return this.joined(host).address;
  }

  joined(host: Host): Joined {
    const joined = this.#joined.get(host);
    if (joined === undefined) throw new Error(`${host.name} has not joined`);
    return joined;
  }

  daemon(host: Host): Daemon {
    const daemon = this.daemons.get(host);
    if (daemon === undefined) throw new Error(`${host.name} has no daemon`);
    return daemon;
  }

  /** Kills the daemon of a host without a chance to clean up. */
  async kill(host: Host): Promise<void> {
    const { process } = this.daemon(host);
    process.signal('SIGKILL');
    await process.exited;
  }

  /** Starts the daemon of a host, with this environment too, and waits until its first pass. */
  async startDaemon(host: Host, env: Readonly<Record<string, string>> = {}): Promise<void> {
    const daemon = new Daemon(await host.spawnCpn(['run'], { env }));
    this.daemons.set(host, daemon);
    await daemon.awaitLog('the daemon runs', ({ msg }) => msg === 'reconciling the network');
  }

  /** Whether WireGuard on a host sends the packets for a peer to the peer itself, whatever key that has now. */
  async isDirect(host: Host, peer: Host): Promise<boolean> {
    const { stdout } = await host.exec(['wg', 'show', 'cpn0', 'allowed-ips']);
    return stdout.split(/\s/).includes(`${this.address(peer)}/32`);
  }

  /** The bytes that a host received from a peer over the path of now; 0 without one. A peer that is added again begins at 0. */
  async received(host: Host, peer: Host): Promise<number> {
    const { stdout } = await host.exec(['wg', 'show', 'cpn0', 'transfer']);
    const line = stdout.split('\n').find((each) => each.startsWith(this.joined(peer).public_key));
    return Number(line?.split(/\s/)[1] ?? 0);
  }

  /** Whether both hosts reach each other directly. */
  async areDirect(...[one, other]: HostPair): Promise<boolean> {
    return (await this.isDirect(one, other)) && (await this.isDirect(other, one));
  }

  /** Waits until both hosts reach each other directly. */
  awaitDirect(...pair: HostPair): Promise<unknown> {
    return this.#await('directly', pair, true);
  }

  /** Waits until both hosts reach each other through the relay. */
  awaitRelayed(...pair: HostPair): Promise<unknown> {
    return this.#await('through the relay', pair, false);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.daemons.values()].map((daemon) => daemon.stop()));
    await this.nat[Symbol.asyncDispose]();
  }

  #await(how: string, [one, other]: HostPair, isDirect: boolean): Promise<unknown> {
    return eventually(
      `${one.name} and ${other.name} reach each other ${how}`,
      async () => {
        const both = await Promise.all([this.isDirect(one, other), this.isDirect(other, one)]);
        return both.every((each) => each === isDirect);
      },
      { timeoutMs: 240_000 },
    );
  }

  async #addConnector(number: number): Promise<void> {
    const host = await this.nat.lab.addHost(`connector-${number}`, { address: `203.0.113.${number + 1}/24` });
    await this.#join(host, ['--type', 'connector', '--endpoint', `${host.address}:51820`]);
  }

  async #join(host: Host, flags: readonly string[], url = this.controlPlane.url): Promise<void> {
    const joining = { network: 'office', flags: ['--wait', '0', ...flags] };
    this.#joined.set(host, await joinHost({ ...this.controlPlane, url }, host, joining));
    await this.startDaemon(host);
  }
}
