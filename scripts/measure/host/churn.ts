import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { joinHost, startControlPlane } from '../../../test/lab/control-plane.ts';
import { startDaemon } from '../../../test/lab/daemon.ts';
import { DnsServer } from '../../../test/lab/dns.ts';
import { Lab } from '../../../test/lab/lab.ts';
import type { Process } from '../../../test/lab/process.ts';
import type { Comparison } from '../comparison.ts';
import { minutesOf } from './minutes.ts';
import { readMemory } from './proc.ts';

/** Seconds between two readings of the memory, and between two changes of the names. */
const every = 5;
/** The names of the churner that have an address. */
const names = ['a', 'b', 'c', 'd'].map((each) => `edge-${each}.example.net`);

/**
 * Drift that another program makes on a host, one change a second: many of them repeatedly, so that
 * repairs are spaced out.
 */
const meddling = `
for i in $(seq 100000); do
  case $((i % 5)) in
    0) wg set cpn0 peer "$(wg show cpn0 peers | shuf -n 1)" remove ;;
    1) ip route del $(ip route show table 8350 dev cpn0 | shuf -n 1 | cut -d' ' -f1) dev cpn0 table 8350 ;;
    2) wg set cpn0 peer "$(wg show cpn0 peers | shuf -n 1)" persistent-keepalive 7 ;;
    3) ip link set cpn0 mtu 1300 ;;
    4) wg set cpn0 peer "$(wg genkey | wg pubkey)" ;;
  esac 2>/dev/null
  sleep 1
done`;

interface Sample {
  readonly daemon: number;
  readonly plane: number;
}

/**
 * The memory of a daemon and of its control plane while hosts come, move and go, and the daemon
 * repairs drift; for an hour by default.
 */
export async function compareChurn(): Promise<Comparison[]> {
  const minutes = minutesOf(60);
  await using lab = await Lab.start();
  const plane = await startControlPlane(lab, '203.0.113.1', ['--limit-requests', '1000000']);
  const cidr = ['--cidr', '10.77.0.0/16', '--route', '10.128.0.0/24'];
  await plane.cpn(['network', 'create', '--name', 'office', ...cidr]);
  const host = await lab.addHost('edge', { address: '203.0.113.11/24' });
  const dns = await DnsServer.start(await lab.addHost('dns', { address: '203.0.113.53/24' }));
  await dns.resolveFor(host);
  const flags = ['--type', 'connector', '--endpoint', '203.0.113.11:51820', '--wait', '0'];
  const { network } = await joinHost(plane, host, { network: 'office', flags });
  const daemon = await startDaemon(host, '--interval', '2');
  const churner = plane.host.spawn(
    ['node', join(import.meta.dirname, 'churner.ts'), plane.url, join(plane.host.homeDir, 'password'), `${network.id}`],
    { holdInput: true },
  );
  const meddler = host.spawn(['bash', '-c', meddling]);
  await churner.waitForLine(/^\d+$/, 60_000);
  const samples: Sample[] = [];
  const until = performance.now() + minutes * 60_000;
  for (let look = 0; performance.now() < until; look += 1) {
    const moved = Object.fromEntries(names.map((name, at) => [name, [`198.18.${at}.${1 + (look % 250)}`]]));
    await dns.serve(moved);
    await delay(every * 1000);
    for (const each of [daemon.process, plane.process, churner, meddler]) refuseEnd(each);
    samples.push({ daemon: readMemory(daemon.process.pid ?? 0).rss, plane: readMemory(plane.process.pid ?? 0).rss });
    if (look % 12 === 11) printProgress(samples, countOf(churner));
  }
  const lines = daemon.log;
  const count = (message: string) => lines.filter(({ msg }) => msg === message).length;
  const counts = `${count('change applied')} passes with a change, ${count('drift repaired')} repairs`;
  process.stderr.write(`${countOf(churner)} changes; the daemon made ${counts}\n`);
  const within = `in ${minutes} min of changes`;
  return [
    ...compareThirds(
      `RSS of the daemon ${within}`,
      samples.map((each) => each.daemon),
    ),
    ...compareThirds(
      `RSS of the control plane ${within}`,
      samples.map((each) => each.plane),
    ),
  ];
}

/**
 * The highest and the median figure of the last third after a tenth to warm up, against those of
 * the first third.
 */
function compareThirds(what: string, figures: readonly number[]): Comparison[] {
  const warm = figures.slice(Math.ceil(figures.length / 10));
  const third = Math.floor(warm.length / 3);
  const [first, last] = [warm.slice(0, third), warm.slice(-third)];
  const target = { ratioAtMost: 1.1, text: '≤ 1.1' };
  const common = { what, unit: 'MiB', target } as const;
  return [
    { ...common, baseline: 'first third', ours: last, theirs: first },
    {
      ...common,
      baseline: 'first third, the highest of each',
      ours: [Math.max(...last)],
      theirs: [Math.max(...first)],
    },
  ];
}

function refuseEnd({ pid, label, output }: Process): void {
  if (pid === undefined) throw new Error(`${label} ended: ${output.stderr.slice(-2000)}`);
}

function countOf(churner: Process): number {
  return Number(churner.output.stdout.trim().split('\n').at(-1));
}

function printProgress(samples: readonly Sample[], changes: number): void {
  const { daemon = 0, plane = 0 } = samples.at(-1) ?? {};
  const minutes = ((samples.length * every) / 60).toFixed(0);
  process.stderr.write(
    `${minutes} min: ${changes} changes; daemon ${daemon.toFixed(1)} MiB, control plane ${plane.toFixed(1)} MiB\n`,
  );
}
