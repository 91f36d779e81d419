/** Hosts whose control plane refuses them: removed as peers, or with their whole network. */
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
  // Without this peer, the removal of one host leaves the other alone, which a second answer has to confirm.
  await new Owner(office.controlPlane).addStranger(1, 'third', '203.0.113.33:51820');
  daemons = await Promise.all(hosts.map((host) => startDaemon(host)));
}, 90_000);

afterAll(() => office?.lab.stop());

const admin = (...args: string[]) => office.controlPlane.cpn(args);
const warnings = ({ log }: Daemon) => log.filter(({ msg }) => msg.startsWith('the newest map cannot be read'));

// A question that the service holds back learns that the network is gone; a later one, that the token is void with it.
it.each([
  ['a removed host', 0, 2, ['token'], ['peer', 'remove', 'office', 'web', '--yes']],
  ['a host of a deleted network', 1, 1, ['token', 'gone'], ['network', 'delete', 'office', '--yes']],
] as const)('%s says so everywhere, and its tunnel stays as it is', async (_, at, others, refusals, removal) => {
  const [host, daemon] = [hosts[at], daemons[at]] as [Host, Daemon];
  await eventually('up', async () => {
    const { state, peers } = await status(host);
    return state === 'up' && peers.length === others;
  });
  const before = (await host.exec(['wg', 'showconf', 'cpn0'])).stdout;
  await admin(...removal);
  const refused = await eventually('refused', async () => (await status(host)).sync.refused);
  expect(refusals).toContain(refused);
  expect(await status(host)).toMatchObject({
    state: 'up',
    sync: { error: expect.stringMatching(/was refused \(40[14]\)/) },
  });
  expect((await host.cpn(['status', '--check'], { allowFailure: true })).exitCode).toBe(3);
  expect((await host.cpn(['status'])).stdout).toMatch(/^sync refused \((token|gone)\) .*; the tunnel stays as it is/m);
  const doctor = await host.cpn(['doctor'], { allowFailure: true });
  expect(doctor.stdout).toMatch(/this host's token for network office.*401/);
  expect((await host.exec(['wg', 'showconf', 'cpn0'])).stdout).toBe(before);
  expect(warnings(daemon)).toHaveLength(1);
});
