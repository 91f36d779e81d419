import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Host } from '../../../test/lab/host.ts';
import { Lab } from '../../../test/lab/lab.ts';
import type { Comparison } from '../comparison.ts';
import { crowdOf, settleCrowd } from './crowd.ts';
import { inTurn } from './in-turn.ts';
import type { PassTimes } from './pass-worker.ts';
import { runsPerFigure } from './proc.ts';

const peers = 10_000;
const patient = { timeoutMs: 600_000 };

/**
 * Passes of a daemon over a network of 10,000 peers: one that changes a single peer, and one that
 * has nothing to do.
 */
export async function comparePasses(): Promise<Comparison[]> {
  await using lab = await Lab.start();
  const host = await lab.addHost('origin', { address: '203.0.113.22/24' });
  await settleCrowd({ config: host.configDir, state: host.stateDir, runtime: host.runtimeDir }, crowdOf(peers));
  await host.cpn(['up'], patient);
  const worker = ['node', join(import.meta.dirname, 'pass-worker.ts')];
  const { stdout } = await host.exec(worker, patient);
  const { changes, steady } = JSON.parse(stdout) as PassTimes;
  const file = join(host.configDir, 'cpn0.conf');
  const { syncconf } = await inTurn(changes.length, {
    syncconf: {
      measured: () => host.exec(['bash', '-c', 'wg syncconf cpn0 <(wg-quick strip cpn0)'], patient),
      after: async () => writeFile(file, await withPeer(file)),
    },
  });
  return [
    {
      ...{ what: `one change in ${peers} peers`, baseline: 'wg syncconf of wg-quick strip', unit: 'ms' },
      ...{ ours: changes, theirs: syncconf, target: { ratioAtMost: 0.05, text: '≤ 0.05' } },
    },
    {
      ...{
        what: `a pass with nothing to do, ${peers} peers`,
        baseline: 'wg show dump, ip -j route',
        unit: 'ms of CPU',
      },
      ...{ ours: steady, theirs: await observeByHand(host, steady.length), target: { ratioAtMost: 2, text: '≤ 2' } },
    },
  ];
}

async function withPeer(file: string): Promise<string> {
  const key = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64');
  return `${await readFile(file, 'utf8')}\n[Peer]\nPublicKey = ${key}\n`;
}

/** Milliseconds of processor time that the tools alone take to show what there is. */
async function observeByHand(host: Host, rounds: number): Promise<number[]> {
  const run = 'wg show cpn0 dump >/dev/null; ip -j route show table all >/dev/null';
  const figure = `for j in $(seq ${runsPerFigure}); do ${run}; done; cat /proc/$$/stat`;
  const script = `cat /proc/$$/stat; for i in $(seq ${rounds}); do ${figure}; done`;
  const { stdout } = await host.exec(['bash', '-c', script], patient);
  const spent = stdout.trim().split('\n').map(childrenOf);
  return spent.slice(1).map((each, index) => (each - (spent[index] ?? 0)) / runsPerFigure);
}

/**
 * Milliseconds of processor time of the children that a process has waited for: proc_pid_stat(5),
 * in ticks of 10 ms.
 */
function childrenOf(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[13]) + Number(fields[14])) * 10;
}
