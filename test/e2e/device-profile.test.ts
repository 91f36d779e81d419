import { copyFile, mkdir, readFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { cutPath, DataCenter, restorePath, serverAddress } from './data-center.ts';
import { patiently, plan, status } from './office.ts';

let center: DataCenter;
/** The connector of the routes, and the one that the phone dials. */
let active: Host;
let dialled: Host;
let origin: Host;
let phone: Host;
let address: string;
/** What the phone has: a wg-quick text, and no cpn. */
let text: string;

beforeAll(async () => {
  center = await DataCenter.start();
  ({ first: active, second: dialled, origin } = await center.addPair());
  const home = await center.lab.addNat('home', { outside: '203.0.113.40/24', inside: '192.168.1.1/24' });
  phone = await home.addHost('phone', '192.168.1.10/24');
  const file = path(admin().homeDir, 'phone.conf');
  const flags = ['--new-peer', 'phone', '--connector', dialled.name, '--output', file];
  await center.controlPlane.cpn(['export', 'office', ...flags]);
  text = await readFile(file, 'utf8');
  address = /^Address = (.*)\/32$/m.exec(text)?.[1] ?? '';
  await mkdir(path(phone.etcDir, 'wireguard'), { recursive: true });
  await copyFile(file, path(phone.etcDir, 'wireguard/wg0.conf'));
  await phone.exec(['wg-quick', 'up', 'wg0']);
});
afterAll(() => center?.stop());

const admin = () => center.controlPlane.host;
const reaches = async (from: Host, to: string) => (await from.ping(to, patiently)).received === 1;
const phoneAt = async (host: Host) => (await status(host)).peers.find(({ name }: { name: string }) => name === 'phone');
const listed = async () => {
  const { stdout } = await center.controlPlane.cpn(['peer', 'list', 'office', '--json']);
  return JSON.parse(stdout).peers.find(({ name }: { name: string }) => name === 'phone');
};

test('a plain WireGuard client reaches a host with an endpoint and a LAN through one connector, and both are called back', async () => {
  expect(text.match(/\[Peer\]/g)).toHaveLength(1);
  expect(text.length).toBeLessThan(310);
  expect(await reaches(phone, center.address(origin))).toBe(true);
  expect(await reaches(phone, serverAddress)).toBe(true);
  for (const host of [origin, active, dialled]) {
    await eventually(`${host.name} has the phone`, async () => (await phoneAt(host)) !== undefined);
    expect(await reaches(host, address)).toBe(true);
  }
  expect(await phoneAt(origin)).toMatchObject({ state: 'relayed', via: dialled.name, allowed_ips: [] });
  expect(await phoneAt(dialled)).toMatchObject({ state: 'connected', allowed_ips: [`${address}/32`] });
  expect((await plan(origin)).changes).toEqual([]);
});

test('the file stays right when peers come, and reports have its last handshake at the connector', async () => {
  const later = await center.addOrigin('later', '203.0.113.23');
  await center.awaitAnswers(later, dialled);
  expect(await reaches(phone, center.address(later))).toBe(true);
  expect(await reaches(later, address)).toBe(true);
  expect(await listed()).toMatchObject({ via: 'connectors', profile_outdated: [] });
  const { id } = await listed();
  await eventually('the report of the connector', async () => {
    const { stdout } = await center.controlPlane.cpn(['api', 'GET', `/api/networks/${center.network}/health`]);
    const { peers } = JSON.parse(stdout).data;
    const report = peers.find(({ name }: { name: string }) => name === dialled.name);
    return report.paths.some(
      (each: { peer: number; handshake_age?: number }) => each.peer === id && each.handshake_age,
    );
  });
});

test('a new key of its connector, the end of its tunnel, and a drain, name the phone', async () => {
  for (const command of [['rotate-key'], ['drain', '--down'], ['leave']]) {
    const { exitCode, stderr } = await dialled.cpn(command, { allowFailure: true });
    expect([exitCode, stderr]).toEqual([
      2,
      expect.stringMatching(/devices that dial .* alone \(phone\) lose the network/i),
    ]);
    expect(stderr).toContain('to confirm, add --yes');
  }
  const drained = await dialled.cpn(['drain', '--json']);
  expect(JSON.parse(drained.stdout).networks).toMatchObject([{ state: 'up', dialling: ['phone'] }]);
  expect(drained.stderr).toContain('(phone) still go through it, and lose the network with it; a new profile through');
  await dialled.cpn(['drain', '--undo']);
  expect(await reaches(phone, center.address(origin))).toBe(true);
});

test('the end of its connector at the control plane is warned of with the name of the phone', async () => {
  const line = `1 profile goes through ${dialled.name}: without it, phone reaches nothing`;
  for (const command of ['remove', 'suspend']) {
    const { exitCode, stderr } = await admin().cpn(['peer', command, 'office', dialled.name], {
      allowFailure: true,
    });
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(line)]);
  }
});

test('a server of the LAN with a route to the network reaches the phone', async () => {
  const lan = (await dialled.exec(['ip', '-j', '-4', 'address', 'show'])).stdout;
  const own = JSON.parse(lan).flatMap(({ addr_info }: { addr_info: { local: string }[] }) =>
    addr_info.map(({ local }) => local),
  );
  const gateway = own.find((each: string) => each.startsWith('192.168.50.'));
  await center.server.exec(['ip', 'route', 'add', '10.77.0.0/24', 'via', gateway]);
  expect(await reaches(center.server, address)).toBe(true);
  await center.server.exec(['ip', 'route', 'del', '10.77.0.0/24']);
});

test('a host that does not reach the connector of the phone reaches the phone through the other one', async () => {
  await cutPath(origin, dialled.address);
  await eventually('the phone is relayed by the other', async () => (await phoneAt(origin))?.via === active.name);
  expect(await reaches(origin, address)).toBe(true);
  expect(await reaches(phone, serverAddress)).toBe(true);
  await restorePath(origin);
});

test('a connector that fails is named with the phones that have no other', { timeout: 120_000 }, async () => {
  await eventually('the connector is used again', async () => (await phoneAt(origin))?.via === dialled.name, {
    timeoutMs: 100_000,
  });
  await dialled.uplink.cut();
  const warning = `${dialled.name} does not answer here, and is the only connector of phone; export a new profile through another connector for each of them`;
  await eventually('the warning', async () => (await status(origin)).warnings?.includes(warning));
  const { stdout } = await origin.cpn(['explain', address, '--json'], { allowFailure: true });
  expect(stdout).toContain(`it dials only ${dialled.name}, which does not answer this host`);
  await dialled.uplink.restore();
});

test('the profile is outdated once its connector moves, and a removed phone is out at once', async () => {
  await center.controlPlane.cpn(['peer', 'update', 'office', dialled.name, '--endpoint', '203.0.113.99:51820']);
  const { stdout, stderr } = await center.controlPlane.cpn(['peer', 'list', 'office']);
  expect(stdout).toMatch(/phone .*outdated/);
  expect(stderr).toContain(
    `is outdated: ${dialled.name} is at 203.0.113.99:51820, and the profile has ${dialled.address}:51820`,
  );
  await center.controlPlane.cpn(['peer', 'update', 'office', dialled.name, '--endpoint', `${dialled.address}:51820`]);
  expect((await listed()).profile_outdated).toEqual([]);
  await eventually('the phone is back', () => reaches(phone, center.address(dialled)));
  await center.controlPlane.cpn(['peer', 'remove', 'office', 'phone', '--yes']);
  await eventually('the phone is out', async () => (await phoneAt(dialled)) === undefined);
  expect((await phone.ping(center.address(origin))).received).toBe(0);
});
