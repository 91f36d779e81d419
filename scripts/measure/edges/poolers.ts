import { eventually } from '../../../test/lab/eventually.ts';
import type { Comparison } from '../comparison.ts';
import type { FollowedNetwork } from './followed-network.ts';
import type { PooledPlanes } from './planes.ts';

const restarts = 10;
const patient = { timeoutMs: 120_000, everyMs: 50 };

/**
 * Restarts PgBouncer under a control plane that runs: in session mode, until a change that was made
 * meanwhile is at the host, and in transaction mode, until the control plane is not ready. A
 * process that starts behind transaction mode has to end with code 2.
 */
export async function measurePooler(planes: PooledPlanes, network: FollowedNetwork): Promise<Comparison[]> {
  const { pooler, plane, serving } = planes;
  const url = serving[2].ways[0]?.url ?? '';
  const readyz = async () => (await plane.host.exec(['curl', '-s', `${url}/readyz`], { allowFailure: true })).stdout;
  const isReady = async () => /"ok"|"ready"/.test(await readyz());
  const [again, lost, back]: number[][] = [[], [], []];
  for (let round = 0; round < restarts; round += 1) {
    const began = performance.now();
    const restarted = pooler.restart('session');
    await network.change();
    again?.push((performance.now() - began) / 1000);
    await restarted;
    await eventually('it is ready', isReady, patient);
    await network.untilWaiting();

    await pooler.restart('transaction');
    const changed = performance.now();
    await eventually('the listener is lost', async () => /listener lost/.test(await readyz()), patient);
    lost?.push((performance.now() - changed) / 1000);
    if (round === 0) await checkRefusal(planes);

    await pooler.restart('session');
    const restored = performance.now();
    await eventually('it is ready', isReady, patient);
    back?.push((performance.now() - restored) / 1000);
    await network.untilWaiting();
  }
  const row = { baseline: '', unit: 's', theirs: [] } as const;
  const target = { share: 0.95, atMost: 10, text: 'p95 ≤ 10 s' };
  return [
    { ...row, what: 'PgBouncer restarts in session mode: a change made meanwhile', ours: again ?? [], target },
    { ...row, what: 'PgBouncer restarts in transaction mode: until "listener lost"', ours: lost ?? [], target },
    { ...row, what: 'the same, back in session mode: until ready', ours: back ?? [], target },
  ];
}

async function checkRefusal(planes: PooledPlanes): Promise<void> {
  const { exitCode, text } = await planes.refuse();
  if (exitCode !== 2 || !/transaction mode/.test(text))
    throw new Error(`a process behind PgBouncer in transaction mode ended with ${exitCode}: ${text}`);
  process.stderr.write(`a process behind PgBouncer in transaction mode: exit code ${exitCode}\n`);
}
