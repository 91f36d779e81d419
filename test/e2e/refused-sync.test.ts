/** Hosts whose control plane refuses them: suspended or removed. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Owner } from '../lab/owner.ts';
import { join, type Office, startOffice, status } from './office.ts';

let office: Office;
let hosts: Host[];
let daemons: Daemon[];

beforeAll(async () => {
  office = await startOffice();
  hosts = [];
  for (const [name, type] of [
    ['web', 'origin'],
    ['edge', 'connector'],
  ] as const) {
    const address = `203.0.113.${11 + hosts.length}`;
    const host = await office.lab.addHost(name, { address: `${address}/24` });
    await join(office, host, '--type', type, '--endpoint', `${address}:51820`);
    hosts.push(host);
  }
  // Without this peer, the removal of one host leaves the other alone, which needs a second answer.
  await new Owner(office.controlPlane).addStranger(1, 'third', '203.0.113.33:51820');
  daemons = await Promise.all(hosts.map((host) => startDaemon(host)));
}, 90_000);

afterAll(() => office?.lab.stop());

const admin = (...args: string[]) => office.controlPlane.cpn(args);
const warnings = ({ log }: Daemon) => log.filter(({ msg }) => msg.startsWith('the newest map cannot be read'));

/** The peers of a tunnel; wireguard-go lists them in another order each time. */
const showTunnel = async (host: Host) =>
  (await host.exec(['wg', 'showconf', 'cpn0'])).stdout
    .split('\n\n')
    .map((peer) => peer.trim())
    .sort();

it('a suspended host loses every other host, at once, and is back once it is resumed', async () => {
  const [web, edge] = hosts as [Host, Host];
  const other = (await web.exec(['wg', 'show', 'cpn0', 'public-key'])).stdout.trim();
  const peersOfEdge = async () => (await edge.exec(['wg', 'show', 'cpn0', 'peers'])).stdout;
  await eventually('up', async () => (await peersOfEdge()).includes(other));
  const { address } = await status(web);
  const reaches = async (isReached: boolean) => {
    const { exitCode } = await edge.exec(['ping', '-c1', '-W1', address], { allowFailure: true });
    return (exitCode === 0) === isReached;
  };
  await eventually('reached', () => reaches(true));
  await admin('peer', 'suspend', 'office', 'web', '--yes');
  await eventually('dropped', async () => !(await peersOfEdge()).includes(other));
  expect(await eventually('refused', async () => (await status(web)).sync.refused)).toBe('forbidden');
  expect((await status(web)).sync.error).toMatch(/this peer is suspended; an admin resumes it with "cpn peer resume"$/);
  const doctor = await web.cpn(['doctor'], { allowFailure: true });
  expect(doctor.stdout).toContain('this peer is suspended');
  expect(doctor.stdout).not.toMatch(/new key|environment of the daemon|join it again/);
  await eventually('not reached', () => reaches(false));
  await admin('peer', 'resume', 'office', 'web', '--expires', '3d');
  await eventually('back', () => reaches(true));
  // Else it polls again at its interval.
  daemons[0]?.process.signal('SIGHUP');
  const isWarned = (warnings: readonly string[]) =>
    warnings.some((warning) => warning.includes('this host expires in 3 days'));
  await eventually('expiry', async () => {
    const { sync, expires_at, warnings } = await status(web);
    return sync.refused === undefined && expires_at !== undefined && isWarned(warnings);
  });
  await daemons[0]?.awaitLog('its end', ({ msg }) => msg === 'this host expires soon');
  expect((await web.cpn(['status'])).stdout).toMatch(/ · expires 20\d\d-/);
  const checked = await web.cpn(['doctor'], { allowFailure: true });
  expect([checked.exitCode, checked.stdout]).toEqual([0, expect.stringContaining('this host expires in 3 days')]);
  await admin('peer', 'update', 'office', 'web', '--expires', 'never');
  await eventually('no end', async () => (await status(web)).expires_at === undefined);
});

it('a removed host says so everywhere, and its tunnel stays as it is', async () => {
  const [host, daemon] = [hosts[0], daemons[0]] as [Host, Daemon];
  await eventually('up', async () => {
    const { state, peers } = await status(host);
    return state === 'up' && peers.length === 2;
  });
  const before = await showTunnel(host);
  const warned = warnings(daemon).length;
  await admin('peer', 'remove', 'office', 'web', '--yes');
  const refused = await eventually('refused', async () => (await status(host)).sync.refused);
  expect(refused).toBe('token');
  expect(await status(host)).toMatchObject({
    state: 'up',
    sync: { error: expect.stringMatching(/was refused \(401\)/) },
  });
  expect((await host.cpn(['status', '--check'], { allowFailure: true })).exitCode).toBe(3);
  expect((await host.cpn(['status'])).stdout).toMatch(/^sync refused \(token\) .*; the tunnel stays as it is/m);
  const doctor = await host.cpn(['doctor'], { allowFailure: true });
  expect(doctor.stdout).toMatch(/this host's token for network office.*401/);
  expect(doctor.stdout).not.toContain('environment of the daemon');
  expect(await showTunnel(host)).toEqual(before);
  expect(warnings(daemon)).toHaveLength(warned + 1);
});
