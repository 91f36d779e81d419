import { readFile, rm } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Office, startOffice } from '../e2e/office.ts';
import type { Joined } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import { atEach, type Checkpoint, crashAt, isConverged, listCheckpoints, type Start, withoutSteps } from './crash.ts';
import { injecting } from './record.ts';
import { listOthers, meetEdge, startWorkers, type Worker, type Workers } from './workers.ts';

let office: Office;
let all: Workers;
let checkpoints: Checkpoint[];
let joins = 0;

beforeAll(async () => {
  office = await startOffice();
  all = await startWorkers(office);
  const [worker] = all.workers as [Worker];
  const { joinAs } = await prepareJoin(worker);
  checkpoints = withoutSteps(await listCheckpoints(worker.host, office.lab, joinAs));
  await makeNew(worker);
});

afterAll(() => office?.lab.stop());

/** Makes a worker's host new, and its network without it; a reboot would take longer than what is tried. */
async function makeNew({ host }: Worker): Promise<void> {
  await host.cpn(['leave', '--yes']);
  // Where the program makes folders, it passes checkpoints.
  for (const folder of [host.stateDir, host.runtimeDir]) await rm(folder, { recursive: true, force: true });
}

/** A key for one use, and a join with it that has the most to do that a join can have. */
async function prepareJoin({ host, network }: Worker) {
  joins += 1;
  const name = `join-${joins}`;
  const input = await all.owner.makeKey(network, name);
  const named = ['--name', name, '--type', 'connector', '--endpoint', `${host.address}:51820`];
  const argv = ['join', '-', ...office.api, ...named, '--wait', '0', '--json'];
  const joinAs = (start?: Start) => host.cpn(argv, { input, allowFailure: true, ...start });
  return { name, joinAs };
}

/** The private key on its disk, if there is one. */
async function readKey(host: Host): Promise<string | undefined> {
  const text = await readFile(path(host.stateDir, 'cpn0.json'), 'utf8').catch(() => '{}');
  return JSON.parse(text).privateKey;
}

/** A further fault of a host whose join is killed. */
type Harm = (host: Host) => Promise<void>;

/** Kills a join at a checkpoint, does `harm` to its host, and repeats it; returns how long that took, in milliseconds. */
async function crashAndJoin(checkpoint: Checkpoint, worker: Worker, harm: Harm): Promise<number> {
  const { host, network } = worker;
  const { name, joinAs } = await prepareJoin(worker);
  expect((await joinAs(crashAt(checkpoint))).signal).toBe('SIGKILL');
  await harm(host);
  const [sent, key] = [await listOthers(all, worker), await readKey(host)];
  const crashedAt = performance.now();
  const { exitCode, stdout, stderr } = await joinAs();
  const took = performance.now() - crashedAt;
  expect(exitCode, stderr).toBe(0);
  expect(await isConverged(host)).toBe(true);
  // One peer; the keys that were sent stay, and only keys that are on the disk are sent.
  const { peer, address, public_key }: Joined = JSON.parse(stdout);
  const peers = await listOthers(all, worker);
  expect(peers).toMatchObject([{ id: peer.id, name, address, public_key }]);
  expect(peers).toMatchObject(sent.length === 0 ? [{}] : sent);
  expect([undefined, await readKey(host)]).toContain(key);
  expect((await all.owner.countUses(network)).get(name)).toBe(1);
  if (checkpoint === checkpoints.at(-1)) await meetEdge(all, worker);
  return took;
}

/** Does it at each of these checkpoints, and returns the longest that it took. */
async function crashEverywhere(at: readonly Checkpoint[], harm: Harm): Promise<number> {
  let longest = 0;
  await atEach(at, all.workers, async (checkpoint, worker) => {
    const took = await crashAndJoin(checkpoint, worker, harm).finally(() => makeNew(worker));
    longest = Math.max(longest, took);
  });
  return longest;
}

/** A power cut leaves the disk: where that is as it was one checkpoint before, there is nothing new to try. */
function findWrites(): Checkpoint[] {
  return checkpoints.filter(({ name }, index) => !/^spawn | run\//.test(name) || index === checkpoints.length - 1);
}

/** While there is no interface, a kill leaves a host no more than a power cut does: the disk. */
function findOthers(): Checkpoint[] {
  const writes = findWrites();
  const interfaceFrom = checkpoints.findIndex(({ name }) => name === 'spawn wireguard-go');
  expect(interfaceFrom).toBeGreaterThan(0);
  return checkpoints.filter((each, index) => index >= interfaceFrom || !writes.includes(each));
}

describe('a join that did not come to its end comes to it when it is repeated, with the same keys to one peer', () => {
  it('20: after kill -9 at each checkpoint at which a power cut is not the same', { timeout: 600_000 }, () =>
    injecting(20, async (row) => {
      const others = findOthers();
      row.injected(`cpn join, killed at each of ${others.length} checkpoints`);
      row.repaired(await crashEverywhere(others, async () => {}));
    }),
  );

  it('18: after a power cut at each of its writes', { timeout: 600_000 }, () =>
    injecting(18, async (row) => {
      const writes = findWrites();
      row.injected(`cpn join, power off at each of ${writes.length} writes`);
      row.repaired(await crashEverywhere(writes, (host) => host.reboot()));
    }),
  );
});
