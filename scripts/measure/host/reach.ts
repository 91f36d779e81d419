import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { joinHost, startControlPlane } from '../../../test/lab/control-plane.ts';
import { Daemon, type LogLine } from '../../../test/lab/daemon.ts';
import { eventually } from '../../../test/lab/eventually.ts';
import type { Host } from '../../../test/lab/host.ts';
import { Lab } from '../../../test/lab/lab.ts';
import { Owner } from '../../../test/lab/owner.ts';
import type { Comparison } from '../comparison.ts';
import { measurePush } from '../service/push.ts';

/** How many hosts wait, and how many changes each of them is to take over. */
const sizes = [
  { waiting: 10, changes: 20 },
  { waiting: 30, changes: 15 },
  { waiting: 100, changes: 10 },
];
const target = { share: 0.99, atMost: 1000, text: 'p99 ≤ 1 s' };
/**
 * Milliseconds after a change in which all hosts settle: their work then is no part of the next
 * change.
 */
const rest = 4_000;
const patient = { timeoutMs: 120_000, everyMs: 50 };

/**
 * How long a change at the control plane takes to be in the kernels of hosts that wait for it: from
 * its answer until `wg` has put it into the table of each, of 10, 30 and 100 hosts in namespaces of
 * this machine; and until 1,000 simulated ones have read it.
 */
export async function compareReach(): Promise<Comparison[]> {
  return [...(await reachHosts()), await reachSimulated()];
}

async function reachSimulated(): Promise<Comparison> {
  const load = { networks: 1, peers: 1000, changes: 50, deltas: true, reconnect: false, profile: null };
  const { delay: took } = await measurePush(load);
  return {
    ...{ what: 'a change reaches 1000 simulated hosts: p99', baseline: '', unit: 'ms', ours: [took.p99], theirs: [] },
    target: { atMost: 100, text: '< 100 ms' },
  };
}

/**
 * Every daemon logs when a step is done: all share the clock of the machine, and a line costs less
 * than polling a hundred tables. By then the tool that configures the kernel has ended.
 */
async function reachHosts(): Promise<Comparison[]> {
  await using lab = await Lab.start();
  const controlPlane = await startControlPlane(lab);
  const owner = new Owner(controlPlane);
  const network = await owner.createNetwork('reach', '10.77.0.0/16');
  const stranger = await owner.addStranger(network, 'stranger', '198.51.100.7:1024');
  const hosts: Host[] = [];
  for (let number = 1; number <= Math.max(...sizes.map(({ waiting }) => waiting)); number += 1) {
    const host = await lab.addHost(`host-${number}`, { address: `203.0.113.${10 + number}/24` });
    const flags = ['--wait', '0', '--endpoint', `${host.address}:51820`];
    await joinHost(controlPlane, host, { network: 'reach', flags });
    hosts.push(host);
  }
  const comparisons: Comparison[] = [];
  const daemons: Daemon[] = [];
  let port = 1024;
  for (const { waiting, changes } of sizes) {
    for (const host of hosts.slice(daemons.length, waiting)) {
      daemons.push(new Daemon(await host.spawnCpn(['run'], { env: { CPN_LOG_LEVEL: 'debug' } })));
    }
    for (const host of hosts.slice(0, waiting)) await eventually('it waits', () => isWaiting(host), patient);
    const ours: number[] = [];
    // The first warms up.
    for (let change = 0; change <= changes; change += 1) {
      await delay(rest);
      const marks = daemons.map((daemon) => daemon.mark());
      port += 1;
      const answered = await owner.setEndpoint(network, stranger, `198.51.100.7:${port}`);
      const lines = daemons.map((daemon, index) => daemon.awaitLog('the change', isDone, marks[index], 120_000));
      const times = (await Promise.all(lines)).map(({ time }) => Math.max(0, time - answered));
      if (change > 0) ours.push(...times);
      await Promise.all(daemons.map((daemon, at) => daemon.awaitLog('the end', isEnd, marks[at], 120_000)));
    }
    const what = `a change is in the kernels of ${waiting} hosts that wait`;
    comparisons.push({ what, baseline: '', unit: 'ms', ours, theirs: [], target: waiting === 100 ? target : null });
  }
  for (const host of hosts) await checkEndpoint(host, `198.51.100.7:${port}`);
  return comparisons;
}

export function isDone({ msg, step }: LogLine): boolean {
  return msg === 'a step is done' && step === 'configure-device';
}

export function isEnd({ msg }: LogLine): boolean {
  return msg === 'change applied';
}

/** True when the host holds a request open at the control plane, according to its notes. */
export async function isWaiting(host: Host): Promise<boolean> {
  const text = await readFile(join(host.runtimeDir, 'cpn0.notes.json'), 'utf8').catch(() => '{}');
  return /"mode": ?"push"/.test(text);
}

async function checkEndpoint(host: Host, endpoint: string): Promise<void> {
  const { stdout } = await host.exec(['wg', 'show', 'cpn0', 'endpoints']);
  if (!stdout.includes(endpoint)) throw new Error(`${host.name} has not taken the last change over: ${stdout}`);
}
