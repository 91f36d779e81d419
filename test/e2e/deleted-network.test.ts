/** A network that is deleted is down at its hosts, comes back after a restore, and no other 410 takes anything down. */
import { access, copyFile, readdir, readFile, rm } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeKey, serveControlPlane } from '../lab/control-plane.ts';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import type { Process } from '../lab/process.ts';
import { join, type Office, patiently, startOffice, status } from './office.ts';

let office: Office;
let service: Process;
let web: Host;
let edge: Host;
let daemons: Daemon[];

beforeAll(async () => {
  office = await startOffice();
  service = office.controlPlane.process;
  web = await office.lab.addHost('web', { address: '203.0.113.11/24' });
  edge = await office.lab.addHost('edge', { address: '203.0.113.12/24' });
  await join(office, web, '--endpoint', '203.0.113.11:51820');
  await join(office, edge, '--type', 'connector', '--endpoint', '203.0.113.12:51820', '--hosts');
  daemons = await Promise.all([web, edge].map(start));
  await reaches(web, edge);
  await admin('control-plane', 'backup', backup(), '--data', data());
}, 90_000);

afterAll(() => office?.lab.stop());

/** Two statements must be 2 s apart, in place of 30 s. */
const start = (host: Host) => startDaemon(host, '--interval', '2');
const admin = async (...args: string[]) => (await office.controlPlane.cpn(args)).stdout;
const backup = () => path(office.controlPlane.host.folder, 'backup.db');
const data = () => path(office.controlPlane.host.folder, 'data');
const hasLink = async (host: Host) =>
  (await host.exec(['ip', 'link', 'show', 'cpn0'], { allowFailure: true })).exitCode === 0;
const isDown = (host: Host) => eventually(`${host.name} is down`, async () => !(await hasLink(host)));
const pending = async () => JSON.parse(await admin('api', 'GET', '/api/networks/1/removals')).data;

async function serve(): Promise<void> {
  const { host } = office.controlPlane;
  service = await serveControlPlane(host, '203.0.113.1', path(host.homeDir, 'password'), []);
}

/** Serves the database as it was before the deletion. */
async function restore(): Promise<void> {
  await service.stop();
  for (const name of await readdir(data())) if (name.startsWith('control-plane.db')) await rm(path(data(), name));
  await copyFile(backup(), path(data(), 'control-plane.db'));
  await serve();
}

const reaches = async (from: Host, to: Host) =>
  eventually(`${from.name} reaches ${to.name}`, async () => {
    const { address } = await status(to);
    return (await from.ping(address, patiently)).received > 0;
  });

it('a 410 of anything else takes nothing down, however often it comes', async () => {
  await service.stop();
  const { host } = office.controlPlane;
  const said = JSON.stringify({ message: 'Gone', deleted: { id: 1, nonce: 'AAAAAAAAAAAA' } });
  const server = path(import.meta.dirname, 'fixed-reply-server.ts');
  const proxy = await host.spawn([process.execPath, server, '8787', '410', 'application/json', said]);
  await proxy.waitForLine(/listening/);
  const isRefused = async () => /\(410\)/.test((await status(web)).sync.error ?? '');
  await eventually('a 410 arrived', isRefused);
  for (let times = 0; times < 3; times++) await web.cpn(['reconcile'], { allowFailure: true });
  expect(await status(web)).toMatchObject({ state: 'up' });
  expect((await status(web)).sync.refused).toBeUndefined();
  await proxy.stop();
  await serve();
  await reaches(web, edge);
});

it('a deleted network is down at each host, which keeps what it needs to come back', async () => {
  const { public_key: key } = await status(web);
  const { stdout, stderr } = await office.controlPlane.cpn(['network', 'delete', 'office', '--yes']);
  expect(stdout).toBe('');
  expect(stderr).toContain('waiting up to 45 s for the hosts to take their tunnels down');
  expect(stderr).toContain('all hosts have taken their tunnel down');
  for (const host of [web, edge]) {
    await isDown(host);
    expect(await readdir(host.configDir)).toEqual(['cpn0.conf.deleted']);
  }
  expect((await edge.exec(['nft', 'list', 'tables'])).stdout).not.toContain('cpn_cpn0');
  expect(await readFile('/etc/hosts', 'utf8')).not.toContain('cpn0');
  const now = await status(web);
  expect(now).toMatchObject({ state: 'down', public_key: key, drift: [], sync: { refused: 'gone' } });
  expect(now.warnings.join()).toMatch(/network office was deleted at http.*comes up automatically.*"cpn leave cpn0"/);
  expect(Date.parse(now.deleted_at)).toBeGreaterThan(0);
  expect((await web.cpn(['status', '--check'], { allowFailure: true })).exitCode).toBe(3);
  const doctor = await web.cpn(['doctor'], { allowFailure: true });
  expect(doctor.stdout).toContain('network office was deleted at http');
  // The daemon still runs, and its requests are refused.
  expect(doctor.stdout).not.toContain('environment of the daemon');
  expect(await pending()).toMatchObject({ pending: [], deleted_at: expect.any(String) });
});

it('stays down through a boot, and through "cpn up" of all networks', async () => {
  await Promise.all(daemons.map((daemon) => daemon.stop()));
  await web.reboot();
  const unit = await web.exec(['wg-quick', 'up', path(web.configDir, 'cpn0.conf')], { allowFailure: true });
  expect(unit.exitCode).not.toBe(0);
  const { stdout, stderr, exitCode } = await web.cpn(['up'], { allowFailure: true });
  expect([exitCode, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(
    /^cpn: cpn0 stays down: network "office" was deleted at http.*"cpn up cpn0" brings it up until/,
  );
  const all = await web.cpn(['up', '--json'], { allowFailure: true });
  expect(JSON.parse(all.stdout).networks).toMatchObject([{ changes: [], error: expect.stringContaining('deleted') }]);
  expect((await web.cpn(['explain', '10.77.0.2'], { allowFailure: true })).stdout).toContain(
    'network office was deleted at',
  );
  daemons = await Promise.all([web, edge].map(start));
  await eventually('it requests the map', async () => (await status(web)).sync.refused === 'gone');
  expect(await hasLink(web)).toBe(false);
});

it('"cpn up NETWORK" brings it up until the control plane states the deletion again', async () => {
  await web.exec(['mount', '--bind', web.configDir, web.configDir]);
  await web.cpn(['up', 'office']);
  expect(await hasLink(web)).toBe(true);
  await web.exec(['mount', '-o', 'remount,bind,ro', web.configDir]);
  await isDown(web);
});

it('status and doctor name the wg-quick file that stays in a read-only folder, until it is writable', async () => {
  const file = path(web.configDir, 'cpn0.conf');
  const { problems, warnings } = await status(web);
  expect(problems).toMatchObject([{ code: 'network-deleted' }, { code: 'config-left', severity: 'problem' }]);
  expect(warnings.join()).toContain(`make ${file} and its folder writable; the next pass renames the file`);
  const doctor = await web.cpn(['doctor'], { allowFailure: true });
  expect([doctor.exitCode, doctor.stdout]).toEqual([
    3,
    expect.stringContaining(`${file} is still there: "wg-quick up`),
  ]);
  await web.exec(['umount', '--lazy', web.configDir]);
  const isRenamed = async () => (await readdir(web.configDir)).join() === 'cpn0.conf.deleted';
  await eventually('a pass renames the file', isRenamed);
  expect((await status(web)).problems).toMatchObject([{ code: 'network-deleted' }]);
});

it('comes back by itself once the control plane is restored, but for a host that "cpn down" took down', async () => {
  await edge.cpn(['down', 'office']);
  await restore();
  await eventually('web is up', async () => (await status(web)).state === 'up');
  expect(await readdir(web.configDir)).toEqual(['cpn0.conf']);
  expect((await status(web)).deleted_at).toBeUndefined();
  await eventually('edge knows', async () => (await status(edge)).sync.refused === undefined);
  expect(await hasLink(edge)).toBe(false);
  await edge.cpn(['up', 'office']);
  await reaches(web, edge);
});

it('a host that was off is named, and counts the statement before a restart of its daemon', async () => {
  await daemons[0]?.stop();
  const { stderr } = await office.controlPlane.cpn(['network', 'delete', 'office', '--yes', '--wait', '0']);
  expect(stderr).toMatch(/hosts that have not taken their tunnel down: .*web \(last request .*, cpn .*\)/);
  expect(await hasLink(web)).toBe(true);
  // Each command is a process of its own.
  await web.cpn(['reconcile'], { allowFailure: true });
  expect(await hasLink(web)).toBe(true);
  expect((await pending()).pending).toContainEqual(expect.objectContaining({ name: 'web', deletion: 'stated' }));
  const notes = path(web.runtimeDir, 'cpn0.notes.json');
  expect(JSON.parse(await readFile(notes, 'utf8')).held).toMatchObject({ isDeletion: true });
  daemons[0] = await startDaemon(web, '--interval', '2');
  await isDown(web);
});

it('a host that joined a new network comes back once that releases the UDP port, which status and doctor name', async () => {
  await isDown(edge);
  await admin('network', 'create', '--name', 'office', '--cidr', '10.78.0.0/24');
  const input = await makeKey(office.controlPlane, 'office', 'again', '--type', 'connector');
  const flags = ['--type', 'connector', '--endpoint', '203.0.113.12:51820', '--wait', '0'];
  const { stderr } = await edge.cpn(['join', '-', ...office.api, ...flags], { input });
  expect(stderr).toMatch(/network office was deleted.*"cpn leave cpn0".*while cpn1 has UDP port 51820/);
  await restore();
  await eventually('the control plane has it again', async () => (await status(edge)).deleted_at === undefined);
  const held = /UDP port 51820 is in use by cpn1, the interface of network "office"/;
  const problem = { text: expect.stringMatching(held), remedy: expect.stringContaining('"cpn leave cpn1"') };
  await daemons[1]?.awaitLog('the pass that failed', (line) => held.test(JSON.stringify(line).replaceAll('\\', '')));
  expect(await status(edge)).toMatchObject({ state: 'down', problems: [problem] });
  expect((await edge.cpn(['doctor'], { allowFailure: true })).stdout).toMatch(held);
  const up = await edge.cpn(['up', 'cpn0'], { allowFailure: true });
  expect([up.exitCode, up.stderr]).toEqual([1, expect.stringMatching(held)]);
  expect(await hasLink(edge)).toBe(false);
  await edge.cpn(['leave', 'cpn1', '--yes']);
  await eventually('edge is up', async () => (await status(edge)).state !== 'down');
  expect(await hasLink(edge)).toBe(true);
});

it('"cpn leave" leaves nothing behind', async () => {
  await daemons[0]?.stop();
  await web.cpn(['leave', 'office', '--yes', '--verify']);
  await expect(access(path(web.configDir, 'cpn0.conf.deleted'))).rejects.toThrow();
  expect(await readdir(web.stateDir).catch(() => [])).toEqual([]);
});
