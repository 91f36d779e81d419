import { readFile, rm } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Office, startOffice } from '../e2e/office.ts';
import { Daemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import type { Outcome } from '../lab/process.ts';
import {
  atEach,
  type Checkpoint,
  crashAt,
  isConverged,
  listCheckpoints,
  type Start,
  withoutRepeats,
  withoutSteps,
} from './crash.ts';
import { LossMeter } from './loss-meter.ts';
import { injecting } from './record.ts';
import { changeMap, joinWorker, meetEdge, startWorkers, type Worker, type Workers } from './workers.ts';

/** A worker whose host has joined, with the key pair that it must keep through everything. */
interface Member extends Worker {
  readonly privateKey: string;
}

let office: Office;
let all: Workers;
let members: readonly Member[];

beforeAll(async () => {
  office = await startOffice();
  all = await startWorkers(office);
  members = await Promise.all(
    all.workers.map(async (worker): Promise<Member> => {
      await joinWorker(all, office, worker);
      await meetEdge(all, worker);
      await changeMap(all, worker);
      await worker.host.cpn(['reconcile']);
      return { ...worker, privateKey: await readKey(worker.host) };
    }),
  );
}, 120_000);

afterAll(() => office?.lab.stop());

async function readKey(host: Host): Promise<string> {
  return JSON.parse(await readFile(path(host.stateDir, 'cpn0.json'), 'utf8')).privateKey;
}

/** The checkpoints of what `work` does about a change of the map. */
async function listAfterChange(work: (member: Member, listing: Start) => Promise<unknown>): Promise<Checkpoint[]> {
  const [member] = members as [Member];
  await changeMap(all, member);
  return listCheckpoints(member.host, office.lab, (listing) => work(member, listing));
}

async function startDaemon({ host }: Worker, start?: Start): Promise<Daemon> {
  return new Daemon(await host.spawnCpn(['run', '--interval', '3600'], start));
}

/** Starts a daemon, lets it take over a change of the map, and ends it unless it ended by then; returns how it ended. */
async function runThroughChange(worker: Worker, start: Start): Promise<Outcome> {
  const daemon = await startDaemon(worker, start);
  const { process } = daemon;
  let ended = false;
  void process.exited.then(() => {
    ended = true;
  });
  const isOver = () => ended || daemon.log.some(({ msg }) => msg === 'change applied');
  await eventually('the change is applied', isOver);
  // Where a SIGTERM is pending, a second one would end it at once.
  if (!ended) process.signal('SIGINT');
  return process.endWithin(10_000);
}

/** The same as after a boot: with no files yet for other programs, which a daemon makes once. */
async function runFirst(worker: Worker, start: Start): Promise<Outcome> {
  await rm(path(worker.host.runtimeDir, 'serving'), { recursive: true, force: true });
  return runThroughChange(worker, start);
}

/** How often something was left to do. */
let recoveries = 0;

/** Lets another pass do what is left to do: each eighth time that of a daemon, because its start costs more than all the rest. */
async function recover(member: Member): Promise<void> {
  recoveries += 1;
  if (recoveries % 8 !== 1) {
    await member.host.cpn(['reconcile']);
    expect(await isRight(member)).toBe(true);
    return;
  }
  const daemon = await startDaemon(member);
  await daemon.awaitLog('the start', ({ msg }) => msg === 'reconciling the network');
  await eventually('all is right', () => isRight(member));
  expect(await daemon.stop()).toMatchObject({ exitCode: 0 });
}

/** Whether a host matches the newest map. It must keep its identity in any case. */
async function isRight({ host, privateKey }: Member): Promise<boolean> {
  expect(await readKey(host)).toBe(privateKey);
  return isConverged(host);
}

/** Does `work` at each of these checkpoints, after a change of the map; returns the longest that it took, in milliseconds. */
async function afterEachChange(
  checkpoints: readonly Checkpoint[],
  work: (checkpoint: Checkpoint, member: Member) => Promise<void>,
): Promise<number> {
  let longest = 0;
  await atEach(checkpoints, members, async (checkpoint, member) => {
    await changeMap(all, member);
    const startedAt = performance.now();
    await work(checkpoint, member);
    longest = Math.max(longest, performance.now() - startedAt);
  });
  return longest;
}

/** The least share of one daemon's checkpoints that another passes too: events differ a little. */
const mostOf = (checkpoints: readonly Checkpoint[]) => checkpoints.length * 0.6;

describe('a pass that did not come to its end is completed by the next one', () => {
  it('20: after kill -9 at each checkpoint of cpn reconcile', { timeout: 600_000 }, () =>
    injecting(20, async (row) => {
      const passed = await listAfterChange(({ host }, listing) => host.cpn(['reconcile'], listing));
      const checkpoints = withoutRepeats(passed);
      row.injected(`cpn reconcile, killed at each of ${checkpoints.length} checkpoints`);
      let killed = 0;
      const longest = await afterEachChange(checkpoints, async (checkpoint, member) => {
        const crash = { ...crashAt(checkpoint), allowFailure: true };
        const { signal, exitCode, stderr } = await member.host.cpn(['reconcile'], crash);
        // How often it checks for a confirmation depends on the peers.
        if (signal === 'SIGKILL') killed += 1;
        else expect(exitCode, stderr).toBe(0);
        await member.host.cpn(['reconcile']);
        expect(await isRight(member)).toBe(true);
      });
      row.repaired(longest);
      expect(killed).toBeGreaterThan(mostOf(checkpoints));
    }),
  );

  it('20: after kill -9 at each change that cpn run makes', { timeout: 600_000 }, () =>
    injecting(20, async (row) => {
      const checkpoints = withoutSteps(await listAfterChange(runFirst));
      row.injected(`cpn run, killed at each of ${checkpoints.length} checkpoints`);
      let killed = 0;
      const longest = await afterEachChange(checkpoints, async (checkpoint, member) => {
        const { signal } = await runFirst(member, crashAt(checkpoint));
        if (signal === 'SIGKILL') killed += 1;
        await recover(member);
      });
      row.repaired(longest);
      expect(killed).toBeGreaterThan(mostOf(checkpoints));
    }),
  );
});

describe('SIGTERM in the middle of a change', () => {
  const behaviour =
    'ends cpn run at each change that it makes; the tunnel stays up, and the next pass does what is left';
  it(`26: ${behaviour}`, { timeout: 600_000 }, () =>
    injecting(26, async (row) => {
      const meters = await Promise.all(members.map(({ host, edgeAddress }) => LossMeter.start(host, edgeAddress)));
      const readIndex = async ({ host }: Worker) => (await host.exec(['cat', '/sys/class/net/cpn0/ifindex'])).stdout;
      const before = await Promise.all(members.map(readIndex));
      const checkpoints = withoutSteps(await listAfterChange(runThroughChange));
      row.injected(`cpn run, SIGTERM at each of ${checkpoints.length} checkpoints`);
      let unfinished = 0;
      const longest = await afterEachChange(checkpoints, async (checkpoint, member) => {
        const outcome = await runThroughChange(member, crashAt(checkpoint, 'SIGTERM'));
        expect(outcome, outcome.stderr).toMatchObject({ exitCode: 0, signal: null });
        if (await isRight(member)) return;
        unfinished += 1;
        await recover(member);
      });
      row.repaired(longest);
      expect(unfinished).toBeGreaterThan(0);
      expect(await Promise.all(members.map(readIndex))).toEqual(before);
      const losses = await Promise.all(meters.map((meter) => meter.stop()));
      row.lost(...losses);
      expect(losses).toMatchObject(losses.map(() => ({ lost: 0 })));
    }),
  );
});
