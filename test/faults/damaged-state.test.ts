import { randomBytes } from 'node:crypto';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Office, plan, startOffice, status } from '../e2e/office.ts';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { addEdge, addMember, edgeAddress } from './members.ts';
import { injecting } from './record.ts';
import { whilePinging } from './while-pinging.ts';

let office: Office;
let edge: Host;
/** Each fault is done to a host of its own, whose tunnel works. */
let hosts: { readonly host: Host }[];

beforeAll(async () => {
  office = await startOffice();
  edge = await addEdge(office);
  hosts = [];
  for (const name of ['once', 'up', 'started', 'running', 'lost']) {
    hosts.push(await addMember(office, edge, name, '--wait', '0'));
  }
});

afterAll(() => office?.lab.stop());

/** What a power cut, or a bad disk, makes of a file. */
const damages: Readonly<Record<string, (text: string) => string>> = {
  truncated: (text) => text.slice(0, text.length / 2),
  empty: () => '',
  'all NUL': (text) => '\0'.repeat(text.length),
  garbage: (text) => randomBytes(text.length).toString('latin1'),
};

const statePath = (host: Host) => path(host.stateDir, 'cpn0.json');

/** What the host reports when it uses the copy of a damaged file. */
const copyNotice = (host: Host) =>
  `${statePath(host)} is damaged; using its previous copy; the next pass moves the damaged file aside`;

async function readKeys(host: Host) {
  const { privateKey } = JSON.parse(await readFile(statePath(host), 'utf8'));
  return { privateKey, device: (await host.exec(['wg', 'show', 'cpn0', 'private-key'])).stdout.trim() };
}

/** Damages the state of a host in each manner, and checks that `notice` reports it; the host keeps its identity. `settle` follows each. */
function damaging(
  { host }: { readonly host: Host },
  how: string,
  notice: (host: Host) => Promise<string>,
  settle: (host: Host) => Promise<unknown> = async () => {},
): Promise<void> {
  return injecting(24, async (row) => {
    const keys = await readKeys(host);
    expect(keys.device).toBe(keys.privateKey);
    let longest = 0;
    row.injected(`${Object.keys(damages).join(', ')}; ${how}`);
    const losses = await whilePinging(host, edgeAddress, async () => {
      for (const damage of Object.values(damages)) {
        const damaged = damage(await readFile(statePath(host), 'utf8'));
        const damagedAt = performance.now();
        await writeFile(statePath(host), damaged);
        expect(await notice(host)).toContain(copyNotice(host));
        longest = Math.max(longest, performance.now() - damagedAt);
        expect(await readFile(`${statePath(host)}.damaged`, 'utf8')).toBe(damaged);
        expect(await readKeys(host)).toEqual(keys);
        expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
        await settle(host);
      }
    });
    row.repaired(longest);
    row.lost(losses);
    expect(losses.lost).toBe(0);
  });
}

const hostOf = (index: number) => hosts[index] as { readonly host: Host };

it('24: cpn reconcile uses the previous copy', () =>
  damaging(hostOf(0), 'cpn reconcile', async (host) => (await host.cpn(['reconcile'])).stderr));

it('24: cpn up uses the previous copy', () =>
  damaging(hostOf(1), 'cpn up', async (host) => (await host.cpn(['up'])).stderr));

it('24: a daemon that starts uses the previous copy', () =>
  damaging(hostOf(2), 'cpn run starts', async (host) => {
    const daemon = await startDaemon(host, '--interval', '3600');
    const isWhole = async () => JSON.parse(await readFile(statePath(host), 'utf8')).version !== undefined;
    await eventually('the state is whole', isWhole);
    await eventually('it waits for updates', async () => (await status(host)).sync.mode === 'push');
    expect(await daemon.stop()).toMatchObject({ exitCode: 0 });
    return daemon.log.map(({ text }) => text).join('\n');
  }));

it('24: a daemon that runs uses the previous copy', async () => {
  const { host } = hostOf(3);
  const daemon = await startDaemon(host, '--interval', '1');
  await eventually('it has the newest map', async () => (await readFile(statePath(host), 'utf8')).includes('"lost"'));
  let mark = daemon.mark();
  // What is written in the very moment of a damage replaces it unseen.
  const isQuiet = async () => Date.now() - (await stat(statePath(host))).mtimeMs > 2_000;
  const settle = () => eventually('nothing is written any more', isQuiet);
  await settle();
  const newest = await readFile(statePath(host), 'utf8');
  await damaging(
    { host },
    'cpn run',
    async () => {
      const isNewest = async () => (await readFile(statePath(host), 'utf8')) === newest;
      await eventually('the state is whole, and its map the newest', isNewest);
      const notices = () => daemon.since(mark).flatMap(({ text }) => (text === copyNotice(host) ? [text] : []));
      await eventually('the notice is logged', () => notices().length > 0);
      expect(notices()).toHaveLength(1);
      mark = daemon.mark();
      return copyNotice(host);
    },
    settle,
  );
  expect(await daemon.stop()).toMatchObject({ exitCode: 0 });
});

it('a private key that is not that of the public key next to it is reported, by what wg derives', async () => {
  const { host } = hostOf(4);
  const text = await readFile(statePath(host), 'utf8');
  const { publicKey, privateKey } = JSON.parse(text);
  const { stdout: another } = await host.exec(['wg', 'genkey']);
  await host.cpn(['down']);
  await writeFile(statePath(host), text.replace(privateKey, another.trim()));
  const { exitCode, stderr } = await host.cpn(['up'], { allowFailure: true });
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining('cpn0 still differs after the change')]);
  expect((await host.cpn(['plan'], { allowFailure: true })).stdout).toContain(`→ public key ${publicKey}`);
  await writeFile(statePath(host), text);
  await host.cpn(['up']);
  await eventually('it works again', async () => (await host.ping(edgeAddress)).received > 0);
});

it('24: where no copy is good, nothing is done, and no new key is made', () =>
  injecting(24, async (row) => {
    const { host } = hostOf(4);
    const { device } = await readKeys(host);
    const losses = await whilePinging(host, edgeAddress, async () => {
      row.injected('both copies garbage');
      for (const file of [statePath(host), `${statePath(host)}.previous`]) await writeFile(file, 'garbage');
      for (const argv of [['reconcile'], ['up'], ['leave', '--yes'], ['join', 'cpn_any', ...office.api]]) {
        const { exitCode, stderr } = await host.cpn(argv, { allowFailure: true });
        expect(exitCode).toBe(1);
        expect(stderr).toContain(`${statePath(host)} is damaged; it holds the private key: restore it from a backup`);
      }
      row.detected();
      expect(await readFile(statePath(host), 'utf8')).toBe('garbage');
      expect((await host.exec(['wg', 'show', 'cpn0', 'private-key'])).stdout.trim()).toBe(device);
    });
    row.lost(losses);
    expect(losses.lost).toBe(0);
  }));
