import { readFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Office, patiently, startOffice } from '../e2e/office.ts';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import { atEach, type Checkpoint, crashAt, isConverged, listCheckpoints, withoutSteps } from './crash.ts';
import { injecting } from './record.ts';
import { joinWorker, listOthers, meetEdge, startWorkers, type Worker, type Workers } from './workers.ts';

let office: Office;
let all: Workers;
let checkpoints: Checkpoint[];
let killed = 0;

beforeAll(async () => {
  office = await startOffice();
  all = await startWorkers(office);
  await Promise.all(
    all.workers.map(async (worker) => {
      await joinWorker(all, office, worker);
      await meetEdge(all, worker);
    }),
  );
  // The peer that has to answer to a new key receives it at once.
  await startDaemon(all.edge);
  const [{ host }] = all.workers as [Worker];
  checkpoints = withoutSteps(await listCheckpoints(host, office.lab, (listing) => host.cpn(['rotate-key'], listing)));
}, 120_000);

afterAll(() => office?.lab.stop());

interface Keys {
  readonly inUse: string;
  /** Whether a change of keys is still going on. */
  readonly isPending: boolean;
}

/** The private key in the state, which file and interface must have too, once nothing is pending. */
async function readKeys({ host }: Worker): Promise<Keys> {
  const { privateKey, rotation } = JSON.parse(await readFile(path(host.stateDir, 'cpn0.json'), 'utf8'));
  return { inUse: privateKey, isPending: rotation !== null };
}

/** The public key under which the control plane lists the host of a worker. */
async function readListed(worker: Worker): Promise<string | undefined> {
  return (await listOthers(all, worker))[0]?.public_key;
}

async function expectWhole(worker: Worker): Promise<void> {
  const { host, edgeAddress } = worker;
  const { inUse, isPending } = await readKeys(worker);
  expect(isPending).toBe(false);
  expect((await host.exec(['wg', 'show', 'cpn0', 'private-key'])).stdout.trim()).toBe(inUse);
  expect(await readFile(path(host.configDir, 'cpn0.conf'), 'utf8')).toContain(`PrivateKey = ${inUse}\n`);
  expect((await host.exec(['wg', 'pubkey'], { input: inUse })).stdout.trim()).toBe(await readListed(worker));
  const answers = async () => (await host.ping(edgeAddress, patiently)).received === 1;
  await eventually('the tunnel answers', answers);
  expect(await isConverged(host)).toBe(true);
}

/** What comes after the crash, in turn; only the last begins another change where the first was over. */
const recoveries: readonly (readonly string[])[] = [['reconcile'], ['up'], ['rotate-key']];

/** Kills a change of keys at a checkpoint, every other time with its host, and lets another command end it. */
async function crashAndEnd(checkpoint: Checkpoint, worker: Worker): Promise<number> {
  const { host } = worker;
  const before = (await readKeys(worker)).inUse;
  const crash = { ...crashAt(checkpoint), allowFailure: true };
  const { signal, exitCode } = await host.cpn(['rotate-key'], crash);
  // How often it checks for an answer depends on the peer.
  if (signal === 'SIGKILL') killed += 1;
  else expect(exitCode).toBe(0);
  if (checkpoint.at % 2 === 0) await host.reboot();
  const state = JSON.parse(await readFile(path(host.stateDir, 'cpn0.json'), 'utf8'));
  const either = [before, state.privateKey, state.rotation?.privateKey];
  const recovery = recoveries[checkpoint.at % recoveries.length] ?? [];
  const crashedAt = performance.now();
  // A busy machine may receive a key too late; then the old one is back.
  await host.cpn(recovery, { allowFailure: true });
  const took = performance.now() - crashedAt;
  await expectWhole(worker);
  if (recovery[0] !== 'rotate-key') expect(either).toContain((await readKeys(worker)).inUse);
  return took;
}

it(
  '20: a change of keys that was killed, at any of its checkpoints, ends in one of the two keys everywhere',
  {
    timeout: 900_000,
  },
  () =>
    injecting(20, async (row) => {
      row.injected(`cpn rotate-key, killed at each of ${checkpoints.length} checkpoints, half of them with the host`);
      let longest = 0;
      await atEach(checkpoints, all.workers, async (checkpoint, worker) => {
        longest = Math.max(longest, await crashAndEnd(checkpoint, worker));
      });
      row.repaired(longest);
      // How often a change reads WireGuard's table depends on the peers.
      expect(killed).toBeGreaterThan(checkpoints.length * 0.6);
    }),
);
