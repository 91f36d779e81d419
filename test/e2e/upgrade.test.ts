/**
 * Hosts and control planes of the previous version and this one, each with the state and the database that the other wrote. The
 * migrations themselves are in test/control-plane/store/migrations/upgrades.test.ts.
 *
 * @module
 */
import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LossMeter } from '../faults/loss-meter.ts';
import { builtProgram } from '../lab/built-program.ts';
import { Daemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';
import { previousProgram } from '../lab/previous-program.ts';
import type { Process } from '../lab/process.ts';

const url = 'http://203.0.113.1:8787';

let lab: Lab;
let plane: Host;
let edge: Host;
/** The paths of the programs. */
const versions = { previous: '', present: '' };
type Version = keyof typeof versions;

beforeAll(async () => {
  versions.previous = join(await previousProgram(), 'cpn.js');
  versions.present = await builtProgram();
  lab = await Lab.start({ commandServers: true });
  plane = await lab.addHost('control-plane', { address: '203.0.113.1/24' });
  edge = await lab.addHost('edge', { address: '203.0.113.2/24' });
  await writeFile(join(plane.homeDir, 'password'), randomBytes(18).toString('base64url'), { mode: 0o600 });
}, 180_000);

afterAll(() => lab?.stop());

const owner = () => ['owner@example.net', join(plane.homeDir, 'password')] as const;

async function serve(version: Version): Promise<Process> {
  const [email, passwordFile] = owner();
  const account = ['--owner-email', email, '--owner-password-file', passwordFile];
  const place = ['--listen', '203.0.113.1:8787', '--data', join(plane.folder, 'data')];
  const process = plane.spawn([versions[version], 'control-plane', 'serve', ...place, ...account]);
  await process.waitForLine(/listening on/);
  return process;
}

let changes = 0;

/** Changes the network by the control plane, and waits until the daemon has saved it; gives the host's public key. */
async function change(hostVersion: Version): Promise<string> {
  changes += 1;
  const route = `192.168.${changes}.0/24`;
  await plane.cpn(['network', 'update', 'office', '--yes', '--route', route]);
  await eventually(`the daemon has ${route}`, async () => {
    const state = JSON.parse(await readFile(join(edge.stateDir, 'cpn0.json'), 'utf8'));
    return state.membership.map.routes.includes(route);
  });
  const { stdout } = await edge.exec([versions[hostVersion], 'status', '--json']);
  const [network] = JSON.parse(stdout).networks;
  expect(network).toMatchObject({ drift: [], sync: { mode: 'push' }, routes: [{ prefix: route, state: 'missing' }] });
  return network.public_key;
}

async function keep(version: Version): Promise<Daemon> {
  const daemon = new Daemon(edge.spawn([versions[version], 'run', '--interval', '3600']));
  await daemon.awaitLog('the start', (line) => line.msg === 'started');
  return daemon;
}

it('a host and its control plane are upgraded and downgraded one after the other, and lose nothing', async () => {
  let serving = await serve('previous');
  const at = ['--api', url, '--insecure-http'];
  const [email, passwordFile] = owner();
  await plane.cpn(['login', ...at, '--email', email, '--password-file', passwordFile]);
  await plane.cpn(['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/24']);
  const key = (await plane.cpn(['key', 'create', 'office', '--name', 'edge'])).stdout.trim();
  const options = ['--wait', '0', '--hosts', '--rotate-every', '300d', '--pin', 'strict'];
  await edge.exec([versions.previous, 'join', '-', ...at, ...options], { input: key });
  let daemon = await keep('previous');
  const publicKeys = [await change('previous')];

  for (const [planeVersion, hostVersion] of [
    ['present', 'previous'],
    ['present', 'present'],
    ['previous', 'present'],
    ['previous', 'previous'],
  ] as const) {
    await serving.stop();
    serving = await serve(planeVersion);
    expect(await daemon.stop()).toMatchObject({ exitCode: 0 });
    daemon = await keep(hostVersion);
    publicKeys.push(await change(hostVersion));
  }
  expect(new Set(publicKeys).size).toBe(1);
  await daemon.stop();
  await serving.stop();
});

it('an accepted route moves to a table of its own and back again, and no packet is lost', async () => {
  const serving = await serve('present');
  const [exit, laptop] = [
    await lab.addHost('exit', { address: '203.0.113.3/24' }),
    await lab.addHost('laptop', { address: '203.0.113.4/24' }),
  ];
  await lab.addLan(exit, '192.168.50.1/24');
  await plane.cpn(['network', 'update', 'office', '--yes', '--route', '192.168.50.0/24']);
  const join = async (host: Host, type: string, ...flags: string[]) => {
    const key = (await plane.cpn(['key', 'create', 'office', '--name', host.name, '--type', type])).stdout.trim();
    const at = ['--api', url, '--insecure-http', '--wait', '0', '--type', type, ...flags];
    await host.exec([versions.previous, 'join', '-', ...at], { input: key });
  };
  await join(exit, 'connector', '--endpoint', '203.0.113.3:51820');
  await join(laptop, 'admin_device');
  await exit.exec([versions.previous, 'reconcile']);
  await using meter = await LossMeter.start(laptop, '192.168.50.1');
  const tables = async () =>
    (await laptop.exec(['ip', '-j', 'route', 'show', 'table', 'all', '192.168.50.0/24'])).stdout;
  for (const [version, places] of [
    ['present', ['8350']],
    ['previous', ['main', '8350']],
    ['present', ['8350']],
  ] as const) {
    await laptop.exec([versions[version], 'reconcile']);
    expect(
      JSON.parse(await tables())
        .map(({ table = 'main' }) => table)
        .sort(),
    ).toEqual([...places].sort());
  }
  expect(await meter.stop()).toMatchObject({ lost: 0 });
  await laptop.exec([versions.present, 'leave', '--yes', '--verify']);
  expect((await laptop.exec(['ip', 'rule'])).stdout).not.toContain('8350');
  await serving.stop();
});
