import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { join, type Office, patiently, plan, startOffice, status } from '../e2e/office.ts';
import { type Joined, makeKey } from '../lab/control-plane.ts';
import { type Daemon, type Mark, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { type FailingDisk, fullDisk, readInside, readOnlyDisk } from './failing-disk.ts';
import { FaultyProxy } from './faulty-proxy.ts';
import { addEdge, addHost, edgeAddress } from './members.ts';
import { injecting, type Recorder } from './record.ts';
import { whilePinging } from './while-pinging.ts';

/** The daemon's messages about its disk, once each. */
const fails = 'the disk failed; continuing from memory';
const recovers = 'the disk works again';

let office: Office;
let edge: Host;
let proxy: FaultyProxy;
let newcomers = 0;

beforeAll(async () => {
  office = await startOffice();
  edge = await addEdge(office);
  proxy = await FaultyProxy.start(office.lab, office.controlPlane);
});

afterAll(() => office?.lab.stop());

const dialled = (host: Host) => ['--endpoint', `${host.address}:51820`];

/** Adds a host with a tunnel to the edge, on a disk that can fail. */
async function addPatient(disk: FailingDisk): Promise<Host> {
  const host = await addHost(office, `patient-${office.lab.hosts.size}`);
  await disk.prepare(host);
  await join(office, host, ...dialled(host));
  await edge.cpn(['reconcile']);
  return host;
}

/** Has one more host join the office, which all others receive. */
async function addNewcomer(): Promise<Joined> {
  newcomers += 1;
  const host = await addHost(office, `newcomer-${newcomers}`);
  return join(office, host, ...dialled(host));
}

async function startKeeper(host: Host): Promise<Daemon> {
  const daemon = await startDaemon(host, '--interval', '2');
  await eventually('it waits for updates', async () => (await status(host)).sync.mode === 'push');
  return daemon;
}

const statePath = (host: Host) => path(host.stateDir, 'cpn0.json');
const configPath = (host: Host) => path(host.configDir, 'cpn0.conf');

/** How often the daemon logged this since a mark. */
const count = (daemon: Daemon, message: string, mark: Mark) =>
  daemon.since(mark).filter(({ msg }) => msg === message).length;

/** While nothing can be written, a host joins and something drifts: both are handled from memory, and logged once. */
async function outlive(host: Host, daemon: Daemon, mark: Mark, disk: FailingDisk): Promise<Joined> {
  const config = await readInside(host, configPath(host));
  const newcomer = await addNewcomer();
  const failure = await daemon.awaitLog('the failure', ({ msg }) => msg === fails, mark);
  expect(failure.error).toContain(`(${disk.code})`);
  await daemon.awaitLog('the change', ({ msg }) => msg === 'change applied', mark);
  expect(await host.ping(newcomer.address, patiently)).toMatchObject({ received: 1 });
  const drifts = daemon.mark();
  await host.exec(['ip', 'link', 'set', 'cpn0', 'mtu', '1300']);
  await daemon.awaitLog('the repair', ({ msg }) => msg === 'drift repaired', drifts);
  expect((await status(host)).mtu).toBe(1420);
  expect(await readInside(host, configPath(host))).toBe(config);
  expect([fails, recovers].map((message) => count(daemon, message, mark))).toEqual([1, 0]);
  return newcomer;
}

/** When everything can be written again, the disk has what was kept in memory, which is logged once. */
async function recover(host: Host, daemon: Daemon, mark: Mark, { public_key }: Joined): Promise<void> {
  await daemon.awaitLog('the recovery', ({ msg }) => msg === recovers, mark);
  expect(await readInside(host, statePath(host))).toContain(public_key);
  expect(await readInside(host, configPath(host))).toContain(public_key);
  expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
  expect([fails, recovers].map((message) => count(daemon, message, mark))).toEqual([1, 1]);
}

/** A daemon whose disk takes nothing goes on, and loses nothing. */
async function survive(disk: FailingDisk, row: Recorder): Promise<void> {
  const host = await addPatient(disk);
  const daemon = await startKeeper(host);
  const losses = await whilePinging(host, edgeAddress, async () => {
    const mark = daemon.mark();
    row.injected(`${disk.how}; a map and a drift`);
    await disk.begin(host);
    const newcomer = await outlive(host, daemon, mark, disk);
    row.detected();
    await disk.end(host);
    await recover(host, daemon, mark, newcomer);
    row.repaired();
  });
  row.lost(losses);
  expect(losses.lost).toBe(0);
  expect(await daemon.stop()).toMatchObject({ exitCode: 0 });
}

/** A join that cannot save its keys sends nothing and leaves nothing; its error has the remedy, and then it works. */
async function refuseJoin(disk: FailingDisk, row: Recorder): Promise<void> {
  const host = await addHost(office, `late-${office.lab.hosts.size}`);
  const input = await makeKey(office.controlPlane, 'office', host.name);
  const argv = ['join', '-', '--api', proxy.url, '--insecure-http', '--json', '--wait', '0'];
  await disk.prepare(host);
  await disk.begin(host);
  const snapshot = async () => [
    (await host.exec(['ls', '-lA', host.stateDir, host.configDir])).stdout,
    await host.state(),
  ];
  const [before, requests] = [await snapshot(), proxy.requests.length];
  row.injected(`${disk.how}; cpn join`);
  const { exitCode, stderr } = await host.cpn(argv, { input, allowFailure: true });
  row.detected();
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(new RegExp(`cpn: cannot .*${statePath(host)}: .*\\(${disk.code}\\); `));
  expect(proxy.requests.length).toBe(requests);
  expect(await snapshot()).toEqual(before);
  await disk.end(host);
  await host.cpn(argv, { input });
  row.repaired();
}

describe.each([
  [22, fullDisk],
  [23, readOnlyDisk],
])('%i: a disk that takes nothing', (fault, disk) => {
  it('does not stop a daemon', () => injecting(fault, (row) => survive(disk, row)));

  it('keeps a host from joining before anything is sent', () => injecting(fault, (row) => refuseJoin(disk, row)));
});

it('23: a host that boots from a read-only disk comes up from what is on it', () =>
  injecting(23, async (row) => {
    const host = await addPatient(readOnlyDisk);
    row.injected('reboot, read-only from the beginning');
    await host.reboot();
    await readOnlyDisk.prepare(host);
    await readOnlyDisk.begin(host);
    const daemon = await startKeeper(host);
    await eventually('the tunnel is up', async () => (await host.ping(edgeAddress, patiently)).received === 1);
    expect(await status(host)).toMatchObject({ drift: [] });
    const newcomer = await outlive(host, daemon, 0, readOnlyDisk);
    row.detected();
    await readOnlyDisk.end(host);
    await recover(host, daemon, 0, newcomer);
    row.repaired();
    expect(await daemon.stop()).toMatchObject({ exitCode: 0 });
  }));
