import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Office, startOffice } from '../e2e/office.ts';
import { atEach, type Checkpoint, crashAt, listCheckpoints, withoutSteps } from './crash.ts';
import { injecting } from './record.ts';
import { joinWorker, listOthers, renew, startWorkers, type Worker, type Workers } from './workers.ts';

let office: Office;
let all: Workers;
let checkpoints: Checkpoint[];
/** The number of the checkpoint from which on there is no state any more. */
let forgotten: number;

beforeAll(async () => {
  office = await startOffice();
  all = await startWorkers(office);
  const [{ host }] = all.workers as [Worker];
  await joinWorker(all, office, all.workers[0] as Worker);
  checkpoints = withoutSteps(
    await listCheckpoints(host, office.lab, (listing) => host.cpn(['leave', '--yes'], listing)),
  );
  forgotten = 1 + (checkpoints.findLast(({ name }) => name === 'unlink state/cpn0.json')?.at ?? 0);
});

afterAll(() => office?.lab.stop());

/** Without folders that may stay, empty but for the lock, once no state names them any more. */
function withoutTraces(state: string): string {
  const trace = /^((run\/cpn|state) 0700 folder|run\/cpn\/lock.*)$/;
  const lines = state.split('\n').filter((line) => !trace.test(line));
  return lines.join('\n');
}

/** The lines that only one of the two states has: atEach prints only the first line of an error. */
function differences(before: string, after: string): string[] {
  const [was, is] = [before.split('\n'), after.split('\n')];
  const gone = was.filter((line) => !is.includes(line)).map((line) => `- ${line}`);
  return [...gone, ...is.filter((line) => !was.includes(line)).map((line) => `+ ${line}`)];
}

/** Kills a leave at a checkpoint, and repeats it; returns how long that took, in milliseconds. */
async function crashAndLeave(checkpoint: Checkpoint, worker: Worker): Promise<number> {
  const { host } = worker;
  const before = await host.state();
  await joinWorker(all, office, worker);
  const crash = { ...crashAt(checkpoint), allowFailure: true };
  expect((await host.cpn(['leave', '--yes'], crash)).signal).toBe('SIGKILL');
  const crashedAt = performance.now();
  await host.cpn(['leave', '--yes']);
  const took = performance.now() - crashedAt;
  const [left, peers] = [await host.state(), await listOthers(all, worker)];
  const isForgotten = checkpoint.at >= forgotten;
  if (isForgotten || left !== before) await renew(all, worker);
  expect(differences(before, isForgotten ? withoutTraces(left) : left)).toEqual([]);
  expect(peers).toEqual([]);
  return took;
}

it(
  '20: a leave that was killed, at any of its checkpoints, leaves nothing when it is repeated',
  {
    timeout: 600_000,
  },
  () =>
    injecting(20, async (row) => {
      row.injected(`cpn leave, killed at each of ${checkpoints.length} checkpoints`);
      let longest = 0;
      await atEach(checkpoints, all.workers, async (checkpoint, worker) => {
        longest = Math.max(longest, await crashAndLeave(checkpoint, worker));
      });
      row.repaired(longest);
    }),
);
