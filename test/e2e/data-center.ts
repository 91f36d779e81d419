import { type ControlPlane, type Joined, joinHost, startControlPlane } from '../lab/control-plane.ts';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';
import { Owner } from '../lab/owner.ts';
import type { Segment } from '../lab/segment.ts';
import { status } from './office.ts';

/** The fields of a peer and of a route in a status that tests use. */
export interface PeerSeen {
  readonly name: string;
  readonly state: string;
  readonly address: string;
  readonly rx_bytes: number;
}
export interface RouteSeen {
  readonly prefix: string;
  readonly via: string | null;
  readonly state: string;
  readonly reason?: string;
}

/** The LAN in the data center, and the one server in it; it has no route back, and so answers masqueraded packets only. */
export const lanRoute = '192.168.50.0/24';
export const serverAddress = '192.168.50.10';

interface ListedPeer {
  readonly name: string;
  readonly public_key: string;
  readonly routes?: readonly string[];
  readonly withdrawn?: readonly string[];
}

/** A data center with two connectors in front of one LAN, and hosts that use it; each of them runs the daemon. */
export class DataCenter {
  readonly lab: Lab;
  readonly controlPlane: ControlPlane;
  readonly owner: Owner;
  readonly network: number;
  readonly lan: Segment;
  readonly server: Host;
  readonly daemons = new Map<Host, Daemon>();
  readonly joined = new Map<Host, Joined>();

  private constructor(lab: Lab, controlPlane: ControlPlane, network: number, lan: Segment, server: Host, owner: Owner) {
    this.lab = lab;
    this.controlPlane = controlPlane;
    this.network = network;
    this.lan = lan;
    this.server = server;
    this.owner = owner;
  }

  /** The data center, without connectors yet. */
  static async start(
    startPlane: (lab: Lab) => Promise<ControlPlane> = startControlPlane,
    env: Readonly<Record<string, string>> = {},
  ): Promise<DataCenter> {
    const lab = await Lab.start({ commandServers: true, env });
    const controlPlane = await startPlane(lab);
    const owner = new Owner(controlPlane);
    const network = await owner.createNetwork('office', '10.77.0.0/24', [lanRoute]);
    const lan = await lab.addSegment('lan');
    const server = await lab.addHost('server', { address: `${serverAddress}/24`, on: lan });
    return new DataCenter(lab, controlPlane, network, lan, server, owner);
  }

  /** Adds a connector: `edge-1` is 203.0.113.31 outside and 192.168.50.1 in the LAN, and so on. */
  async addConnector(number: number, ...flags: string[]): Promise<Host> {
    const host = await this.lab.addHost(`edge-${number}`, { address: `203.0.113.${30 + number}/24` });
    await host.plug(this.lan, { address: `192.168.50.${number}/24` });
    return this.join(host, '--type', 'connector', '--endpoint', `${host.address}:51820`, ...flags);
  }

  /** Adds two connectors with these flags and an origin, and waits until both answer the origin. */
  async addPair(...flags: string[]): Promise<{ first: Host; second: Host; origin: Host }> {
    const first = await this.addConnector(1, ...flags);
    const second = await this.addConnector(2, ...flags);
    const origin = await this.addOrigin('origin', '203.0.113.22');
    await this.awaitAnswers(origin, first, second);
    return { first, second, origin };
  }

  /** Gives this connector precedence while it is healthy; otherwise one that was out of service stays on standby. */
  async prefer(host: Host): Promise<void> {
    await this.controlPlane.cpn(['peer', 'update', 'office', host.name, '--priority', '1']);
  }

  /** Adds an origin server, which can be dialled. */
  async addOrigin(name: string, address: string, ...flags: string[]): Promise<Host> {
    const host = await this.lab.addHost(name, { address: `${address}/24` });
    return this.join(host, '--type', 'origin', '--endpoint', `${address}:51820`, ...flags);
  }

  /**
   * Adds a laptop behind a NAT of its own, whose outside address this is. Laptops stay relayed to
   * each other: their routers accept new packets from outside.
   */
  async addLaptop(name: string, outside: string, ...flags: string[]): Promise<Host> {
    const home = await this.lab.addNat(`${name}-home`, { outside: `${outside}/24`, inside: '192.168.1.1/24' });
    return this.join(await home.addHost(name, '192.168.1.10/24'), '--type', 'admin_device', ...flags);
  }

  /** Joins a host and starts its daemon. */
  async join(host: Host, ...flags: string[]): Promise<Host> {
    const joining = { network: 'office', flags: ['--wait', '0', ...flags] };
    this.joined.set(host, await joinHost(this.controlPlane, host, joining));
    this.daemons.set(host, await startDaemon(host));
    return host;
  }

  /** Ends the daemon of a host and starts another, whose only state is on disk. */
  async restartDaemon(host: Host): Promise<void> {
    await this.daemon(host).stop();
    this.daemons.set(host, await startDaemon(host));
  }

  daemon(host: Host): Daemon {
    const daemon = this.daemons.get(host);
    if (daemon === undefined) throw new Error(`${host.name} has no daemon`);
    return daemon;
  }

  /** A host as the control plane lists it. */
  async listed(host: Host): Promise<ListedPeer> {
    const { stdout } = await this.controlPlane.cpn(['network', 'show', 'office', '--json']);
    const { peers } = JSON.parse(stdout) as { readonly peers: readonly ListedPeer[] };
    const peer = peers.find(({ name }) => name === host.name);
    if (peer === undefined) throw new Error(`the control plane does not list ${host.name}`);
    return peer;
  }

  /** The address of a host in the tunnel. */
  address(host: Host): string {
    return this.joined.get(host)?.address ?? '';
  }

  /** Waits until a host has received an answer of each of these. */
  async awaitAnswers(host: Host, ...peers: Host[]): Promise<void> {
    const names = peers.map((peer) => peer.name);
    await eventually(
      `${names} are live at ${host.name}`,
      async () => {
        const seen: PeerSeen[] = (await status(host)).peers;
        return names.every((name) => seen.some((peer) => peer.name === name && peer.state === 'connected'));
      },
      { timeoutMs: 60_000 },
    );
  }

  async stop(): Promise<void> {
    await this.lab.stop();
  }
}

/** The routes to the LAN in a host's status. */
export async function routesOf(host: Host): Promise<RouteSeen[]> {
  return (await status(host)).routes.filter((route: RouteSeen) => route.prefix === lanRoute);
}

/** Waits until the route leads through this connector, and returns the route's status. */
export function awaitRoute(host: Host, via: Host, timeoutMs = 30_000): Promise<RouteSeen[]> {
  return eventually(
    `${host.name} uses ${via.name}`,
    async () => {
      const routes = await routesOf(host);
      return routes.some((route) => route.state === 'active' && route.via === via.name) && routes;
    },
    { timeoutMs },
  );
}

/** Loses every packet between a host and an address outside the tunnel, and no other. */
export async function cutPath(
  host: Host,
  address: string,
  hooks: readonly string[] = ['input', 'output', 'forward'],
): Promise<void> {
  const rules = hooks.map(
    (hook) =>
      `chain ${hook} {\ntype filter hook ${hook} priority -300\nip saddr ${address} drop\nip daddr ${address} drop\n}`,
  );
  await host.exec(['nft', '-f', '-'], { input: `table ip cut {\n${rules.join('\n')}\n}\n` });
}

/** Undoes {@link cutPath}. */
export async function restorePath(host: Host): Promise<void> {
  await host.exec(['nft', 'delete', 'table', 'ip', 'cut']);
}
