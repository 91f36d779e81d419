/**
 * Hosts without endpoints where one side lacks the relay that the map names: a host of the previous version, and a control plane of it.
 *
 * @module
 */
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { type ControlPlane, makeKey } from '../lab/control-plane.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import type { Lab } from '../lab/lab.ts';
import { previousProgram } from '../lab/previous-program.ts';
import { DataCenter } from './data-center.ts';
import { NumberedSession, serveEchoes } from './numbered-session.ts';
import { awaitRelay } from './relays.ts';
import { call, listen } from './tcp.ts';

let previous: string;
let center: DataCenter | undefined;

beforeAll(async () => {
  previous = join(await previousProgram(), 'cpn.js');
}, 180_000);
afterEach(() => center?.stop());

/** Starts a control plane of the previous version, where its first owner is logged in. */
async function startPreviousPlane(lab: Lab): Promise<ControlPlane> {
  const host = await lab.addHost('control-plane', { address: '203.0.113.1/24' });
  const url = `http://${host.address}:8787`;
  const passwordFile = join(host.homeDir, 'password');
  await writeFile(passwordFile, randomBytes(18).toString('base64url'), { mode: 0o600 });
  const account = ['--owner-email', 'owner@example.net', '--owner-password-file', passwordFile];
  const place = ['--listen', `${host.address}:8787`, '--data', join(host.folder, 'data')];
  const process = host.spawn([previous, 'control-plane', 'serve', ...place, ...account]);
  await process.waitForLine(/listening on/, 120_000);
  const named = ['--email', 'owner@example.net', '--password-file', passwordFile];
  await host.cpn(['login', '--api', url, '--insecure-http', ...named]);
  return { host, url, process, cpn: (args) => host.cpn(args) };
}

/** Adds a laptop of the previous version, and returns its address in the network. */
async function addPreviousLaptop({ lab, controlPlane }: DataCenter): Promise<{ host: Host; address: string }> {
  const home = await lab.addNat('old-home', { outside: '203.0.113.42/24', inside: '192.168.1.1/24' });
  const host = await home.addHost('old', '192.168.1.10/24');
  const flags = ['--api', controlPlane.url, '--insecure-http', '--type', 'admin_device', '--wait', '0', '--json'];
  const input = await makeKey(controlPlane, 'office', 'old', '--type', 'admin_device');
  const { stdout } = await host.exec([previous, 'join', '-', ...flags], { input });
  host.spawn([previous, 'run']);
  return { host, address: JSON.parse(stdout).address };
}

/** Waits until a server sees a client with this address. */
const awaitSeen = (from: Host, to: string, seen: string) =>
  eventually(`${to} sees ${seen}`, async () => (await call(from, to)) === seen);

test('toward a host of the previous version the relay masquerades, and from it keeps the address', {
  timeout: 120_000,
}, async () => {
  center = await DataCenter.start();
  const connectors = [await center.addConnector(1), await center.addConnector(2)];
  const laptop = await center.addLaptop('laptop', '203.0.113.40');
  const { host: old, address: oldAddress } = await addPreviousLaptop(center);
  for (const host of [laptop, old]) await listen(host);
  await awaitSeen(old, center.address(laptop), oldAddress);
  const relay = await awaitRelay([laptop, old], connectors);
  await awaitSeen(laptop, oldAddress, center.address(relay));
});

test('with a control plane of the previous version every connector masquerades', { timeout: 120_000 }, async () => {
  center = await DataCenter.start(startPreviousPlane);
  const connectors = [await center.addConnector(1), await center.addConnector(2)];
  const laptop = await center.addLaptop('laptop', '203.0.113.40');
  const tablet = await center.addLaptop('tablet', '203.0.113.41');
  for (const host of [laptop, tablet]) await center.awaitAnswers(host, ...connectors);
  const relay = await awaitRelay([laptop, tablet], connectors);
  await serveEchoes(tablet);
  const session = await NumberedSession.tcp(laptop, center.address(tablet));
  expect(session.seen).toBe(center.address(relay));
  await relay.uplink.cut();
  const next = await awaitRelay([laptop, tablet], connectors, relay);
  await listen(tablet);
  await awaitSeen(laptop, center.address(tablet), center.address(next));
});
