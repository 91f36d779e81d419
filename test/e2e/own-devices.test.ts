/** A person joins a device by a login, and the device goes with that person. */
import { glob, readFile, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { join, type Office, patiently, startOffice, status } from './office.ts';

const email = 'ann@example.net';
const password = 'a password of ann, long enough';

let office: Office;
let server: Host;
let laptop: Host;
let daemon: Daemon;
let passwordFile: string;

const admin = async (...args: string[]) => (await office.controlPlane.cpn(args)).stdout;
const ownFlags = () => ['--own-password-file', path(office.controlPlane.host.homeDir, 'password')];
const login = () => ['--login', '--email', email, '--password-file', passwordFile, ...office.api];
const peersOf = async (host: Host) =>
  (await host.exec(['wg', 'show', 'cpn0', 'peers'])).stdout.split('\n').filter((line) => line !== '');

beforeAll(async () => {
  office = await startOffice();
  server = await office.lab.addHost('server', { address: '203.0.113.11/24' });
  laptop = await office.lab.addHost('laptop', { address: '203.0.113.12/24' });
  await join(office, server, '--endpoint', '203.0.113.11:51820');
  daemon = await startDaemon(server, '--interval', '3600');
  const file = path(office.controlPlane.host.homeDir, 'ann');
  passwordFile = path(laptop.homeDir, 'ann');
  for (const each of [file, passwordFile]) await writeFile(each, password, { mode: 0o600 });
  await admin('user', 'create', '--email', email, '--role', 'viewer', '--password-file', file, ...ownFlags());
}, 60_000);

afterAll(() => office?.lab.stop());

it('refuses a login where no network lets the user, and leaves nothing on the host', async () => {
  const { exitCode, stderr } = await laptop.cpn(['join', ...login()], { allowFailure: true });
  expect(stderr).toContain('no network lets viewer enrol own devices; an admin makes a key with "cpn key create"');
  expect(exitCode).not.toBe(0);
  await expect(readFile(path(laptop.stateDir, 'cpn0.json'))).rejects.toThrow('ENOENT');
});

it('joins by a login to the ping, as a device of the user, and keeps nothing of the session', async () => {
  await admin('network', 'update', 'office', '--self-enroll', 'member,viewer', '--reauth', '24h');
  await laptop.cpn(['join', ...login(), '--wait', '0']);
  await eventually('the server has the laptop', async () => (await peersOf(server)).length === 1);
  await laptop.ping('10.77.0.1', patiently);
  const { peers } = JSON.parse(await admin('peer', 'list', 'office', '--json'));
  expect(peers).toMatchObject([
    { name: 'server' },
    { name: 'laptop', peer_type: 'admin_device', user: { email }, reauth_hours: 24 },
  ]);
  expect(peers[0]).not.toHaveProperty('user');
  expect(await admin('peer', 'list', 'office', '--wide')).toMatch(/ user .*\n.*\n.* ann@example\.net /);
  expect(await admin('network', 'show', 'office')).toContain(
    'own devices: up to 3 for each member, viewer; each leaves the network 1 d after the last login of its user',
  );
  const sessions = JSON.parse(await admin('token', 'list', '--user', email, '--json'));
  expect(sessions).toEqual({ sessions: [] });
  for await (const file of glob('**/*', { cwd: laptop.stateDir })) {
    const text = await readFile(path(laptop.stateDir, file), 'utf8').catch(() => '');
    expect(text).not.toMatch(/cpu_|cpn_[\w-]{43}/);
  }
  expect(Date.parse((await status(laptop)).expires_at)).toBeGreaterThan(Date.now() + 23 * 3_600_000);
});

it('is not joined twice', async () => {
  const { exitCode, stderr } = await laptop.cpn(['join', ...login()], { allowFailure: true });
  expect(exitCode).not.toBe(0);
  expect(stderr).toContain('network office');
  expect(JSON.parse(await admin('peer', 'list', 'office', '--json')).peers).toHaveLength(2);
});

it('is cut off with its user, and keeps the name of its former owner', async () => {
  const mark = daemon.mark();
  await admin('user', 'remove', email, '--yes');
  await eventually('the server has dropped it', async () => (await peersOf(server)).length === 0);
  expect(daemon.since(mark).filter(({ level }) => level > 30)).toEqual([]);
  const { peers } = JSON.parse(await admin('peer', 'list', 'office', '--json'));
  expect(peers[1]).toMatchObject({ user: { id: null, email }, suspended_at: expect.any(String) });
  expect((await laptop.cpn(['reconcile'], { allowFailure: true })).stderr).toContain('this peer is suspended');
});
