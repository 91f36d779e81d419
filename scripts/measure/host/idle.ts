import { setTimeout as delay } from 'node:timers/promises';
import { type ControlPlane, joinHost, startControlPlane } from '../../../test/lab/control-plane.ts';
import { type Daemon, startDaemon } from '../../../test/lab/daemon.ts';
import { eventually } from '../../../test/lab/eventually.ts';
import type { Host } from '../../../test/lab/host.ts';
import { Lab } from '../../../test/lab/lab.ts';
import type { Comparison } from '../comparison.ts';
import { spreadOf } from '../spread.ts';
import { minutesOf } from './minutes.ts';
import { findSibling, readMemory, readProcessorTime } from './proc.ts';

const peers = 10;
/** MiB that the daemon may write to beyond those of a bare Node. */
const mostAboveNode = 12;
/**
 * A minute before the first reading: compiler and garbage collector are idle, and all handshakes
 * are made.
 */
const warmUpMs = 60_000;
/** Readings in all, each over the same time: a figure of processor time is one of such a time. */
const looks = 10;

/** The measured processes, by their ids. */
type Watched = Readonly<Record<'cpn' | 'node' | 'tunnel', number>>;
type Figures = Record<keyof Watched, number[]>;

/** An idle daemon against an idle Node and the tunnel itself; for ten minutes by default. */
export async function compareIdle(): Promise<Comparison[]> {
  const minutes = minutesOf(10);
  await using lab = await Lab.start();
  const { host, daemon } = await startOffice(lab);
  const timer = host.spawn(['node', '-e', 'setInterval(() => {}, 1000)']);
  await delay(warmUpMs);
  const bare = timer.pid ?? 0;
  const watched = { cpn: daemon.process.pid ?? 0, node: bare, tunnel: findSibling(bare, 'wireguard-go') };
  const { rss, dirty, load } = await watch(watched, (minutes * 60_000) / looks);
  const what = `idle daemon, ${peers} peers, ${minutes} min:`;
  const limit = { atMost: 0.08, text: '< 0.08 %' };
  const node = spreadOf(dirty.node).p50;
  const memory = { what: `${what} RSS`, unit: 'MiB', ours: rss.cpn } as const;
  const written = { what: `${what} private dirty memory`, unit: 'MiB', ours: dirty.cpn } as const;
  const time = { what: `${what} CPU, children included`, unit: '% of a core', ours: load.cpn } as const;
  return [
    { ...memory, baseline: 'node with a timer', theirs: rss.node, target: null },
    { ...memory, baseline: 'wireguard-go', theirs: rss.tunnel, target: null },
    {
      ...{ ...written, baseline: 'node with a timer', theirs: dirty.node },
      target: { ratioAtMost: (node + mostAboveNode) / node, text: `≤ Node + ${mostAboveNode} MiB` },
    },
    { ...time, baseline: 'node with a timer', theirs: load.node, target: limit },
    { ...time, baseline: 'wireguard-go', theirs: load.tunnel, target: null },
  ];
}

/** A daemon in a network of real hosts, whose daemons do not run. */
interface IdleOffice {
  readonly plane: ControlPlane;
  readonly network: number;
  readonly host: Host;
  readonly daemon: Daemon;
}

/** A host that has joined a network of ten others, and whose daemon waits at the control plane. */
export async function startOffice(lab: Lab): Promise<IdleOffice> {
  const plane = await startControlPlane(lab);
  await plane.cpn(['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/24', '--route', '192.168.50.0/24']);
  const join = async (name: string, number: number, type: string) => {
    const host = await lab.addHost(name, { address: `203.0.113.${number}/24` });
    const flags = ['--type', type, '--endpoint', `203.0.113.${number}:51820`, '--wait', '0'];
    const { network } = await joinHost(plane, host, { network: 'office', flags });
    return { host, network: network.id };
  };
  // A connector reaches all hosts, and has more to watch than other hosts.
  const { host, network } = await join('host', 10, 'connector');
  const others = await Promise.all(Array.from({ length: peers }, (_, at) => join(`peer-${at}`, 11 + at, 'origin')));
  await Promise.all(others.map((other) => other.host.cpn(['reconcile'])));
  const daemon = await startDaemon(host);
  await eventually('the daemon waits at the control plane', async () => {
    const { networks } = JSON.parse((await host.cpn(['status', '--json'])).stdout);
    return networks[0].sync.mode === 'push' && networks[0].peers.length >= peers;
  });
  return { plane, network, host, daemon };
}

async function watch(watched: Watched, everyMs: number): Promise<Record<'rss' | 'dirty' | 'load', Figures>> {
  const [rss, dirty, load] = [none(), none(), none()];
  const names = Object.keys(watched) as (keyof Watched)[];
  const spent = () => names.map((name) => readProcessorTime(watched[name]));
  let [before, since] = [spent(), performance.now()];
  for (let look = 0; look < looks; look += 1) {
    await delay(everyMs);
    const [now, at] = [spent(), performance.now()];
    for (const [index, name] of names.entries()) {
      const memory = readMemory(watched[name]);
      rss[name].push(memory.rss);
      dirty[name].push(memory.privateDirty);
      load[name].push((((now[index] ?? 0) - (before[index] ?? 0)) / (at - since)) * 100);
    }
    [before, since] = [now, at];
  }
  return { rss, dirty, load };
}

function none(): Figures {
  return { cpn: [], node: [], tunnel: [] };
}
