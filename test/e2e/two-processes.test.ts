/** Two processes of one host: one stands still (SIGSTOP) where the other one must not come between. */
import { readFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { builtProgram, REPOSITORY } from '../lab/built-program.ts';
import { makeKey } from '../lab/control-plane.ts';
import { Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { join, type Office, patiently, startOffice, status } from './office.ts';

let office: Office;
let edge: Host;
let host: Host;
let daemon: Watched & { readonly log: Daemon };
let starts = 0;

beforeAll(async () => {
  office = await startOffice();
  await office.controlPlane.cpn(['network', 'create', '--name', 'site', '--cidr', '10.78.0.0/24']);
  edge = await office.lab.addHost('edge', { address: '203.0.113.12/24' });
  host = await office.lab.addHost('host', { address: '203.0.113.13/24' });
  await join(office, edge, '--endpoint', '203.0.113.12:51820');
  await startDaemon(edge);
  const started = await start(['run', '--interval', '3600']);
  daemon = { ...started, log: new Daemon(started.process) };
});

afterAll(() => office?.lab.stop());

/** A program that reports its checkpoints. */
type Watched = Awaited<ReturnType<typeof start>>;

/** Where a program is to stand still; see test/lab/kill-at.cjs. */
interface Place {
  readonly at?: string;
  readonly after?: boolean;
}

async function start(args: readonly string[], { at = '', after = false }: Place = {}, input = '') {
  starts += 1;
  const list = path(office.lab.folder, `checkpoints-${starts}`);
  const preload = path(REPOSITORY, 'test', 'lab', 'kill-at.cjs');
  const env = { NODE_OPTIONS: `--require=${preload}`, CHECKPOINTS: list, STOP_AT: at };
  const process = host.spawn([await builtProgram(), ...args], {
    env: after ? { ...env, STOP_AFTER: '1' } : env,
    input,
  });
  const label = `cpn ${args.join(' ')}`;
  const checkpoints = async () => (await readFile(list, 'utf8').catch(() => '')).split('\n');
  return { process, label, checkpoints };
}

/** Starts a command, and returns once it stands still. */
async function startHeld(args: readonly string[], place: Place, input = ''): Promise<Watched> {
  const watched = await start(args, place, input);
  onTestFinished(() => watched.process.signal('SIGKILL'));
  await eventually(`${watched.label} stands still`, async () => {
    const { pid } = watched.process;
    return pid !== undefined && /\) T /.test(await readFile(`/proc/${pid}/stat`, 'utf8'));
  });
  return watched;
}

/** Returns once a program tried for a lock again and again, with nothing in between. */
async function awaitLocked({ label, checkpoints }: Watched): Promise<void> {
  await eventually(
    `${label} waits for a lock`,
    async () => {
      const last = (await checkpoints()).filter((line) => line !== '').slice(-6);
      return last.length === 6 && last.every((line) => /^write .*\/(lock|change)$/.test(line));
    },
    { timeoutMs: 20_000 },
  );
}

/** Lets a command go on, and returns what it printed. */
async function release({ process }: Watched): Promise<string> {
  process.signal('SIGCONT');
  return finish(process);
}

async function finish(process: Watched['process']): Promise<string> {
  const { exitCode, stdout, stderr } = await process.endWithin(60_000);
  expect(exitCode, stderr).toBe(0);
  return stdout;
}

const joinArgs = () => ['join', '-', ...office.api, '--wait', '0', '--json'];
const answers = (address: string) => async () => (await host.ping(address, patiently)).received === 1;

it('two joins next to the daemon take two interfaces, and neither loses its key', async () => {
  const keys = await Promise.all(
    ['office', 'site'].map((network) => makeKey(office.controlPlane, network, `${network}-1`)),
  );
  const [one, two] = keys as [string, string];
  // Its keys are made, and not on the disk yet.
  const first = await startHeld(joinArgs(), { at: 'rename cpn0.json' }, one);
  const second = await start(joinArgs(), {}, two);
  await awaitLocked(second);
  const joined = [JSON.parse(await release(first)), JSON.parse(await finish(second.process))];
  expect(joined.map((each) => [each.interface, each.network.name])).toEqual([
    ['cpn0', 'office'],
    ['cpn1', 'site'],
  ]);
  for (const { interface: link, public_key } of joined) {
    await daemon.log.awaitLog(
      `${link} is followed`,
      (line) => line.msg === 'reconciling the network' && line.interface === link,
    );
    expect((await host.exec(['wg', 'show', link, 'public-key'])).stdout.trim()).toBe(public_key);
  }
  await host.cpn(['leave', 'cpn1', '--yes']);
});

it('a change of keys that stands still keeps the daemon from its interface, and one key is everywhere at the end', async () => {
  await eventually('it waits for updates', async () => (await status(host)).sync.mode === 'push');
  // State and file have the new key, and the interface has the old one.
  const rotating = await startHeld(['rotate-key', '--json'], { at: 'rename cpn0.conf', after: true });
  await host.exec(['ip', 'link', 'set', 'cpn0', 'mtu', '1300']);
  await awaitLocked(daemon);
  expect(JSON.parse(await release(rotating)).networks).toMatchObject([{ interface: 'cpn0', rotated: true }]);
  await eventually('the daemon repaired what changed', async () => (await status(host)).mtu === 1420);
  const { privateKey, rotation } = JSON.parse(await readFile(path(host.stateDir, 'cpn0.json'), 'utf8'));
  expect(rotation).toBeNull();
  expect((await host.exec(['wg', 'show', 'cpn0', 'private-key'])).stdout.trim()).toBe(privateKey);
  expect(await readFile(path(host.configDir, 'cpn0.conf'), 'utf8')).toContain(`PrivateKey = ${privateKey}\n`);
  await eventually('the tunnel answers', answers((await status(edge)).address));
});

it('an up waits for a down that stands still, and the tunnel is up at the end', async () => {
  const down = await startHeld(['down', 'cpn0', '--json'], { at: 'rename cpn0.json', after: true });
  const up = await start(['up', 'cpn0', '--json']);
  await awaitLocked(up);
  await host.exec(['ip', 'link', 'set', 'cpn0', 'mtu', '1300']);
  await release(down);
  await finish(up.process);
  await eventually('the tunnel answers', answers((await status(edge)).address));
  expect(await status(host)).toMatchObject({ mtu: 1420, drift: [] });
});

it('a leave that stands still next to the daemon is no error to it, and nothing comes back', async () => {
  const mark = daemon.log.mark();
  // The control plane has removed the peer, whose token is void, and the interface is gone.
  const leaving = await startHeld(['leave', 'cpn0', '--yes'], { at: 'unlink cpn0.conf' });
  await awaitLocked(daemon);
  await release(leaving);
  await daemon.log.awaitLog('its end', ({ msg }) => msg === 'stopped reconciling the network', mark);
  expect(daemon.log.since(mark).filter(({ level }) => level >= 40)).toEqual([]);
  expect((await host.exec(['ip', '-br', 'link'])).stdout).not.toContain('cpn');
  expect((await host.exec(['ls', host.configDir])).stdout).toBe('');
  expect(await daemon.process.stop(10_000)).toMatchObject({ exitCode: 0 });
});
