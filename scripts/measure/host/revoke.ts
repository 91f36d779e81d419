import { setTimeout as delay } from 'node:timers/promises';
import { joinHost, startControlPlane } from '../../../test/lab/control-plane.ts';
import { Daemon, type LogLine } from '../../../test/lab/daemon.ts';
import { eventually } from '../../../test/lab/eventually.ts';
import type { Host } from '../../../test/lab/host.ts';
import { Lab } from '../../../test/lab/lab.ts';
import { Owner } from '../../../test/lab/owner.ts';
import type { Comparison } from '../comparison.ts';
import { isDone, isWaiting } from './reach.ts';

const usualSizes = [2, 3, 100];
const usualRounds = 20;
/** Milliseconds between two changes, in which daemons settle. */
const rest = 1_000;
const patient = { timeoutMs: 600_000 };
const target = { share: 0.95, atMost: 2, text: 'p95 ≤ 2 s' };

/**
 * From the request that removes a peer until the kernel of the last host has dropped it, in
 * networks of so many peers, that peer among them. All others are real hosts whose daemons run.
 */
export async function compareRevoke(rounds = usualRounds, sizes = usualSizes): Promise<Comparison[]> {
  const comparisons: Comparison[] = [];
  for (const size of sizes) {
    const what = `a removed peer is gone from the last host, ${size} peers`;
    comparisons.push({ what, baseline: '', unit: 's', ours: await measure(size, rounds), theirs: [], target });
  }
  return comparisons;
}

async function measure(size: number, rounds: number): Promise<number[]> {
  await using lab = await Lab.start();
  const plane = await startControlPlane(lab);
  await plane.cpn(['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/16']);
  const hosts: Host[] = [];
  for (let number = 0; number < size - 1; number += 1) {
    const address = `203.0.113.${10 + number}`;
    const host = await lab.addHost(`host-${number}`, { address: `${address}/24` });
    const flags = ['--endpoint', `${address}:51820`, '--wait', '0'];
    await joinHost(plane, host, { network: 'office', flags });
    hosts.push(host);
  }
  const env = { CPN_LOG_LEVEL: 'debug' };
  const daemons = await Promise.all(hosts.map(async (host) => new Daemon(await host.spawnCpn(['run'], { env }))));
  for (const host of hosts) await eventually('it waits', () => isWaiting(host), patient);
  const owner = new Owner(plane);
  const took: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const before = daemons.map((daemon) => daemon.mark());
    const removed = await owner.addStranger(1, `lost-${round}`, '198.51.100.7:1024');
    await awaitAll(daemons, isDone, before);
    await delay(rest);
    const marks = daemons.map((daemon) => daemon.mark());
    const began = Date.now();
    await owner.removePeer(1, removed);
    const times = await awaitAll(daemons, isRemoved, marks);
    took.push((Math.max(...times) - began) / 1000);
    await delay(rest);
  }
  return took;
}

/** When each daemon logged such a line, in milliseconds since the epoch. */
async function awaitAll(
  daemons: readonly Daemon[],
  matches: (line: LogLine) => boolean,
  marks: readonly number[],
): Promise<number[]> {
  const lines = daemons.map((daemon, at) => daemon.awaitLog('the change', matches, marks[at], 120_000));
  return (await Promise.all(lines)).map(({ time }) => time);
}

function isRemoved({ msg, step }: LogLine): boolean {
  return msg === 'a step is done' && step === 'remove-peers';
}
