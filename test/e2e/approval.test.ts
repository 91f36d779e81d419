/** A host that joins a network with approval waits, and comes up with the approval of an administrator. */
import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeKey } from '../lab/control-plane.ts';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { previousProgram } from '../lab/previous-program.ts';
import { join, type Office, patiently, startOffice, status } from './office.ts';

let office: Office;
let server: Host;
let previous: string;

beforeAll(async () => {
  previous = path(await previousProgram(), 'cpn.js');
  office = await startOffice();
  server = await office.lab.addHost('server', { address: '203.0.113.11/24' });
  await join(office, server, '--endpoint', '203.0.113.11:51820');
  await server.spawnCpn(['run']);
  await admin('network', 'update', 'office', '--approval', 'required');
}, 180_000);

afterAll(() => office?.lab.stop());

const admin = async (...args: string[]) => (await office.controlPlane.cpn(args)).stdout;
const attempt = (...args: string[]) => office.controlPlane.host.cpn(args, { allowFailure: true });
const peers = async () => JSON.parse(await admin('peer', 'list', 'office', '--json')).peers;
/** The keys of the peers that WireGuard has on a host. */
async function reached(host: Host): Promise<readonly string[]> {
  const { stdout } = await host.exec(['wg', 'show', 'cpn0', 'peers']);
  return stdout.split('\n').filter((line) => line !== '');
}

it('a host joins, waits, is approved by its fingerprint, and comes up within a second', {
  timeout: 60_000,
}, async () => {
  const laptop = await office.lab.addHost('laptop', { address: '203.0.113.12/24' });
  const key = await makeKey(office.controlPlane, 'office', 'laptop');
  const joined = await laptop.cpn(['join', '-', ...office.api, '--json'], { input: key });
  const report = JSON.parse(joined.stdout);
  expect(report).toMatchObject({ handshake: false, awaiting_approval: expect.any(String) });
  const command = `cpn peer approve 1 ${report.peer.id}`;
  expect(joined.stderr).toContain(`an admin compares the fingerprint and types: ${command}`);
  expect(joined.stderr).toContain(report.fingerprint);
  await using daemon = await startDaemon(laptop, '--interval', '3600');
  await daemon.awaitLog('it waits', ({ code }) => code === 'awaiting-approval');
  const before = await status(laptop);
  expect(before).toMatchObject({ state: 'degraded', peers: [], routes: [] });
  expect(before.sync).not.toHaveProperty('error');
  expect(before.problems).toEqual([expect.objectContaining({ code: 'awaiting-approval', severity: 'problem' })]);
  expect((await laptop.cpn(['status', '--check'], { allowFailure: true })).exitCode).toBe(3);
  expect((await laptop.cpn(['status'])).stdout).toContain('waits for the approval of an administrator');
  expect(await reached(server)).toEqual([]);

  const [, waiting] = await peers();
  expect(waiting).toMatchObject({ name: 'laptop', fingerprint: report.fingerprint, suspended_at: expect.any(String) });
  expect(await admin('peer', 'list', 'office')).toMatch(new RegExp(`laptop .* waiting .* ${report.fingerprint}`));
  const other = await attempt('peer', 'approve', 'office', 'laptop', '--fingerprint', '0'.repeat(32));
  expect([other.exitCode, other.stderr]).toEqual([2, expect.stringContaining('it is another host')]);
  const part = await attempt('peer', 'approve', 'office', 'laptop', '--fingerprint', report.fingerprint.slice(0, 9));
  expect([part.exitCode, part.stderr]).toEqual([2, expect.stringContaining('not a whole fingerprint')]);
  const unasked = await attempt('peer', 'approve', 'office', 'laptop');
  expect([unasked.exitCode, unasked.stderr]).toEqual([2, expect.stringContaining('add --yes')]);
  const resumed = await attempt('peer', 'resume', 'office', 'laptop');
  expect([resumed.exitCode, resumed.stderr]).toEqual([4, expect.stringContaining('cpn peer approve')]);
  expect(await reached(server)).toEqual([]);

  const approved = await attempt(
    'peer',
    'approve',
    'office',
    'laptop',
    '--fingerprint',
    report.fingerprint.toUpperCase(),
  );
  expect([approved.exitCode, approved.stderr]).toEqual([0, 'approved peer laptop (2) of network office\n']);
  await eventually(
    'both have each other',
    async () => (await reached(laptop)).length + (await reached(server)).length === 2,
    {
      timeoutMs: 1_000,
    },
  );
  await server.ping(report.address, patiently);
  const { problems = [] } = await status(laptop);
  expect(problems.map(({ code }: { code: string }) => code)).not.toContain('awaiting-approval');
  const again = await attempt('peer', 'approve', 'office', 'laptop', '--yes');
  expect([again.exitCode, again.stderr]).toEqual([0, 'peer laptop (2) does not wait for approval\n']);
});

it('a host of an earlier version sees a network of itself alone, and comes up with the approval', {
  timeout: 60_000,
}, async () => {
  const old = await office.lab.addHost('old', { address: '203.0.113.13/24' });
  const input = await makeKey(office.controlPlane, 'office', 'old');
  const { stdout, stderr } = await old.exec([previous, 'join', '-', ...office.api, '--json'], { input });
  const report = JSON.parse(stdout);
  expect(stderr).not.toMatch(/warn|error/i);
  old.spawn([previous, 'run']);
  await eventually('its daemon follows', async () => {
    const [network] = JSON.parse((await old.exec([previous, 'status', '--json'])).stdout).networks;
    return network.state === 'up' && network.sync.mode === 'push';
  });
  const shown = await old.exec([previous, 'status', '--check', '--json']);
  expect(JSON.parse(shown.stdout).networks[0]).toMatchObject({ peers: [], routes: [] });
  expect(JSON.parse(shown.stdout).networks[0]).not.toHaveProperty('warnings');
  await admin('peer', 'approve', 'office', 'old', '--yes');
  await eventually('it has the others', async () => (await reached(old)).length >= 1, { timeoutMs: 2_000 });
  await server.ping(report.address, patiently);
});

it('a host that waits leaves, joins again, and leaves nothing of it', { timeout: 60_000 }, async () => {
  const guest = await office.lab.addHost('guest', { address: '203.0.113.14/24' });
  const key = await makeKey(office.controlPlane, 'office', 'guest');
  const ask = () => guest.cpn(['join', '-', ...office.api], { input: key });
  expect((await ask()).stdout).toContain('joined office as guest');
  // The same join again continues it.
  expect((await ask()).stderr).toContain('waits for the approval of an administrator');
  expect((await peers()).filter(({ name }: { name: string }) => name === 'guest')).toHaveLength(1);
  const wait = await guest.cpn(['wait', '--for', 'handshake', '--timeout', '1'], { allowFailure: true });
  expect(wait.exitCode).toBe(3);
  await guest.cpn(['leave', '--yes']);
  expect((await peers()).filter(({ name }: { name: string }) => name === 'guest')).toEqual([]);
});
