import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { REPOSITORY } from '../lab/built-program.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import type { Process } from '../lab/process.ts';
import { type DataCenter, type RouteSeen, routesOf, serverAddress } from './data-center.ts';
import { startSession, type TcpSession } from './tcp-session.ts';

/** The address that keepalived moves, and the router to which BIRD announces the network. */
const gateway = '192.168.50.254';
const routerAddress = '192.168.50.3';
const file = '192.168.50.0_24';

/** What takes the connector in service out of service. */
export type Cause = 'upstream' | 'drain' | 'undrain';

/** One move of the routes, as a flow saw it. */
export interface Move {
  readonly cause: Cause;
  readonly flow: string;
  readonly from: string;
  readonly to: string;
  /** The longest run of pings without an answer, and the seconds that it lasted. */
  readonly lost: number;
  readonly seconds: number;
}

/** Seconds between two pings. */
const every = 0.1;

/** A data center whose LAN follows the connector in service: its server by keepalived, its router by BIRD. */
export class Routers {
  readonly center: DataCenter;
  readonly connectors: readonly [Host, Host];
  readonly origin: Host;
  readonly router: Host;
  /** From the mesh into the LAN and back, each with data every 50 ms. */
  readonly sessions: readonly TcpSession[];
  readonly #flows: Readonly<Record<string, readonly [Host, string]>>;

  private constructor(
    center: DataCenter,
    hosts: { connectors: readonly [Host, Host]; origin: Host; router: Host; sessions: readonly TcpSession[] },
  ) {
    this.center = center;
    this.connectors = hosts.connectors;
    this.origin = hosts.origin;
    this.router = hosts.router;
    this.sessions = hosts.sessions;
    this.#flows = {
      'mesh to LAN': [this.origin, serverAddress],
      'LAN to mesh, keepalived': [center.server, center.address(this.origin)],
      'LAN to mesh, BIRD': [this.router, center.address(this.origin)],
    };
  }

  static async start(center: DataCenter): Promise<Routers> {
    const { first, second, origin } = await center.addPair('--no-masquerade');
    const router = await center.lab.addHost('router', { address: `${routerAddress}/24`, on: center.lan });
    await center.server.exec(['ip', 'route', 'add', '10.77.0.0/24', 'via', gateway]);
    for (const [number, host] of [first, second].entries()) {
      await startKeepalived(host, number === 0 ? {} : { 'priority 100': 'priority 90' });
      await startBird(host, await readRecipe('/etc/bird/bird.conf', { '192.168.50.1': `192.168.50.${number + 1}` }));
      await followFile(host);
    }
    await startBird(router, routerConfig);
    for (const host of [center.server, router]) await awaitPing(host, center.address(origin));
    const sessions = [
      await startSession(origin, center.server, serverAddress),
      await startSession(router, origin, center.address(origin)),
    ];
    return new Routers(center, { connectors: [first, second], origin, router, sessions });
  }

  /** The contents of the files of both connectors. */
  readFiles(): Promise<string[]> {
    return Promise.all(this.connectors.map((host) => readServing(host)));
  }

  /** Makes the connector in service leave it, so often and for these causes, and measures each move. */
  async *move(causes: readonly Cause[]): AsyncGenerator<Move> {
    for (const cause of causes) {
      const from = await this.#awaitServing(null);
      const flows = Object.entries(this.#flows).map(([name, [host, address]]) => ({
        name,
        ping: host.spawn(['ping', '-n', '-D', '-i', String(every), '-c', '1000', address]),
      }));
      for (const { ping } of flows) await ping.waitForLine(/icmp_seq=\d+ ttl/, 30_000);
      const drained = this.#begin(cause, from);
      drained.catch(() => {});
      const to = await this.#awaitServing(from);
      for (const { name, ping } of flows) {
        await goesOn(ping);
        const { stdout } = await ping.stop();
        yield { cause, flow: name, from: from.name, to: to.name, ...longestLoss(stdout) };
      }
      await drained;
      await this.#end(cause, from);
    }
  }

  async #begin(cause: Cause, host: Host): Promise<void> {
    if (cause === 'upstream') await host.uplink.cut();
    if (cause === 'drain') await host.cpn(['drain', '--yes']);
    if (cause !== 'undrain') return;
    await this.#other(host).cpn(['drain', '--undo']);
  }

  /** A connector that was cut off can take over again as soon as all others see that it answers. */
  async #end(cause: Cause, host: Host): Promise<void> {
    if (cause !== 'upstream') return;
    await host.uplink.restore();
    const isBack = ({ reason = '' }: RouteSeen) => reason.startsWith('answers again');
    await eventually('the origin sees that it answers', async () => (await routesOf(this.origin)).some(isBack));
    for (const each of this.connectors)
      await eventually(`${each.name} sees it`, async () => isReturn(each, this, host));
  }

  #other(host: Host): Host {
    const [first, second] = this.connectors;
    return host === first ? second : first;
  }

  /** The connector in service, other than `before`. */
  async #awaitServing(before: Host | null): Promise<Host> {
    return eventually(
      'one connector is in service',
      async () => {
        const values = await this.readFiles();
        const serving = this.connectors.filter((_, index) => values[index] === '1\n');
        return serving.length === 1 && serving[0] !== before && serving[0];
      },
      { timeoutMs: 90_000, everyMs: 50 },
    );
  }
}

/** A file that docs/connectors.md shows, with these texts replaced. */
async function readRecipe(name: string, changes: Readonly<Record<string, string>> = {}): Promise<string> {
  const docs = await readFile(path(REPOSITORY, 'docs/connectors.md'), 'utf8');
  const text = docs.split(`<!-- recipe: ${name} -->\n`)[1]?.split(/^```\w*\n/m)[1];
  if (text === undefined) throw new Error(`docs/connectors.md has no ${name}`);
  let changed = text;
  for (const [from, to] of Object.entries(changes)) {
    if (!changed.includes(from)) throw new Error(`${name} has no "${from}"`);
    changed = changed.replaceAll(from, to);
  }
  return changed;
}

function readServing(host: Host): Promise<string> {
  return readFile(path(host.runtimeDir, 'serving', 'cpn0', file), 'utf8').catch(() => '');
}

/** Whether the state of a connector says that `host` answers again, or has no failure left. */
async function isReturn(at: Host, { center }: Routers, host: Host): Promise<boolean> {
  const { failed = [] } = JSON.parse(await readFile(path(at.stateDir, 'cpn0.json'), 'utf8'));
  const id = center.joined.get(host)?.peer.id;
  return failed.every((each: { peer: number; back: boolean }) => each.peer !== id || each.back);
}

async function startKeepalived(host: Host, changes: Readonly<Record<string, string>>): Promise<void> {
  const config = path(host.folder, 'keepalived.conf');
  await writeFile(config, await readRecipe('/etc/keepalived/keepalived.conf', changes));
  await host.exec(['keepalived', '-t', '-f', config]);
  host.spawn(['keepalived', '--dont-fork', '--log-console', '-f', config]);
}

/** A router that learns the network from both connectors. */
const routerConfig = `
router id ${routerAddress};
protocol device { }
protocol kernel { ipv4 { export where source = RTS_BGP; import none; }; }
template bgp connector {
    local ${routerAddress} as 65003;
    ipv4 { import all; export none; };
}
protocol bgp edge_1 from connector { neighbor 192.168.50.1 as 65050; }
protocol bgp edge_2 from connector { neighbor 192.168.50.2 as 65050; }
`;

async function startBird(host: Host, text: string): Promise<void> {
  const config = path(host.folder, 'bird.conf');
  await writeFile(config, text);
  await mkdir(path(host.folder, 'run', 'bird'), { recursive: true });
  host.spawn(['bird', '-f', '-c', config]);
  await eventually('BIRD runs', async () => (await host.exec(['birdc', 'show', 'status'])).exitCode === 0);
}

/** As systemd does by the path unit: runs the script at each change of the file. */
async function followFile(host: Host): Promise<void> {
  const script = path(host.folder, 'bird-serving');
  await writeFile(script, await readRecipe('/usr/local/sbin/bird-serving'));
  await chmod(script, 0o755);
  const watcher = `
    const [folder, script] = process.argv.slice(1);
    const run = () => require('child_process').spawnSync(script, { stdio: 'inherit' });
    require('fs').watch(folder, run);
    run();
  `;
  const folder = path(host.runtimeDir, 'serving', 'cpn0');
  await eventually('the file is there', async () => (await readServing(host)) !== '');
  host.spawn(['node', '-e', watcher, folder, script]);
}

async function awaitPing(host: Host, address: string): Promise<void> {
  await eventually(`${host.name} reaches ${address}`, async () => (await host.ping(address)).received === 1);
}

/** Waits until five more pings were answered. */
async function goesOn(ping: Process): Promise<void> {
  const countOf = () => ping.output.stdout.split('icmp_seq=').length;
  const seen = countOf();
  await eventually('pings are answered', () => countOf() > seen + 5);
}

/** The longest run of pings without an answer. */
function longestLoss(stdout: string): { lost: number; seconds: number } {
  const answers = [...stdout.matchAll(/^\[([\d.]+)\].*icmp_seq=(\d+) ttl/gm)];
  const losses = answers.slice(1).map((answer, index) => {
    const before = answers[index] as RegExpExecArray;
    return { lost: Number(answer[2]) - Number(before[2]) - 1, seconds: Number(answer[1]) - Number(before[1]) };
  });
  return losses.reduce((most, each) => (each.lost > most.lost ? each : most), { lost: 0, seconds: 0 });
}
