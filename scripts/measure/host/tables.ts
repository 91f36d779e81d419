import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Host } from '../../../test/lab/host.ts';
import { Lab } from '../../../test/lab/lab.ts';
import { loadRoutes } from '../../../test/lab/routing-table.ts';
import type { Comparison } from '../comparison.ts';
import { crowdOf, settleCrowd } from './crowd.ts';
import type { TablePasses } from './table-worker.ts';

const peers = 10;
/** Of a full table of the internet. */
const routes = Number(process.env.BENCH_ROUTES ?? 1_000_000);
const changesPerSecond = 20;
/** MiB that the process may have more than the one without these routes. */
const mostAbove = 20;
const router = '203.0.113.1';
const patient = { timeoutMs: 1_200_000 };

/**
 * Passes of a host with a full routing table in two tables, which changes all the time, and of one
 * without, at the same time.
 */
export async function compareTables(): Promise<Comparison[]> {
  await using lab = await Lab.start();
  const plain = await addHost(lab, 'plain', 21);
  const full = await addHost(lab, 'full', 22);
  for (const table of ['main', '100']) await loadRoutes(full, routes, router, table);
  const churn = await startChurn(full);
  const worker = ['node', join(import.meta.dirname, 'table-worker.ts')];
  const measure = async (host: Host) => JSON.parse((await host.exec(worker, patient)).stdout) as TablePasses;
  const [ours, theirs] = await Promise.all([measure(full), measure(plain)]);
  await churn.stop();
  const what = `a pass with nothing to do, ${routes.toLocaleString('en')} routes in two tables each, ${changesPerSecond} changes a second`;
  const memory = Math.min(...theirs.memory);
  return [
    {
      ...{ what, baseline: 'the same without these routes', unit: 'ms of CPU' },
      ...{ ours: ours.passes, theirs: theirs.passes, target: { ratioAtMost: 1.5, text: '≤ 1.5' } },
    },
    {
      ...{ what: 'its resident memory', baseline: 'the same without these routes', unit: 'MiB' },
      ...{ ours: ours.memory, theirs: theirs.memory },
      target: { ratioAtMost: (memory + mostAbove) / memory, text: `≤ ${mostAbove} MiB more` },
    },
    {
      ...{ what: 'passes that its changes started', baseline: '', unit: 'events' },
      ours: [ours.events],
      theirs: [],
      target: { atMost: 0, text: '0' },
    },
  ];
}

async function addHost(lab: Lab, name: string, number: number): Promise<Host> {
  const host = await lab.addHost(name, { address: `203.0.113.${number}/24` });
  await settleCrowd({ config: host.configDir, state: host.stateDir, runtime: host.runtimeDir }, crowdOf(peers));
  await host.cpn(['up'], patient);
  return host;
}

/** Replaces routes one after the other, until it is stopped. */
async function startChurn(host: Host) {
  const path = join(host.folder, 'churn');
  const script = `while sleep ${1 / changesPerSecond}; do i=$(((i + 1) % 256)); ip route replace 20.0.$i.0/24 via ${router} proto bgp metric $((i % 2)); done`;
  await writeFile(path, script);
  return host.spawn(['bash', path]);
}
