import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ControlPlane, joinHost, startControlPlane } from '../lab/control-plane.ts';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { nats } from '../lab/nat/nat.ts';
import { NatLab } from '../lab/nat/nat-lab.ts';

let nat: NatLab;
let controlPlane: ControlPlane;
const daemons: Daemon[] = [];
let connector: Host;
let laptop: Host;
let tablet: Host;

async function join(host: Host, ...flags: string[]): Promise<string> {
  const { address } = await joinHost(controlPlane, host, { network: 'office', flags: ['--wait', '0', ...flags] });
  daemons.push(await startDaemon(host));
  return address;
}

/** Its findings. Its exit code is about other checks, and a busy machine may fail one. */
const diagnose = async () => (await laptop.cpn(['doctor', '--all'], { allowFailure: true })).stdout;

const run = async (...args: string[]) => (await laptop.cpn(args)).stdout;

async function peersOf(): Promise<readonly Record<string, unknown>[]> {
  return JSON.parse(await run('status', '--json')).networks[0].peers;
}

beforeAll(async () => {
  nat = await NatLab.start({ commandServers: true });
  controlPlane = await startControlPlane(nat.lab);
  await controlPlane.cpn(['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/24']);
  connector = await nat.lab.addHost('connector', { address: '203.0.113.2/24' });
  const office = await nat.addRouter('office-router', nats.portPreserving);
  const home = await nat.addRouter('home-router', nats.portPreserving);
  laptop = (await nat.addHost('laptop', office)).host;
  tablet = (await nat.addHost('tablet', home)).host;
});
afterAll(async () => {
  await Promise.all(daemons.map((daemon) => daemon.stop()));
  await nat?.[Symbol.asyncDispose]();
});

test('status, explain and doctor show the path, the latest attempt and the NAT', async () => {
  await join(connector, '--type', 'connector', '--endpoint', `${connector.address}:51820`);
  const [own, address] = await Promise.all([
    join(laptop, '--type', 'admin_device'),
    join(tablet, '--type', 'admin_device'),
  ]);
  await eventually('the laptop has the tablet', async () =>
    (await peersOf()).some(({ name, path, via }) => name === 'tablet' && path === 'relayed' && via === 'connector'),
  );
  expect(await diagnose()).toMatch(/the NAT of this host.* is unknown until/);
  await laptop.exec(['sh', '-c', `ping -i 0.2 -c 900 ${address} >/tmp/pings 2>&1 &`]);
  await eventually('a direct path', async () =>
    (await peersOf()).some(({ name, path, since }) => name === 'tablet' && path === 'direct' && since !== undefined),
  );
  expect(await run('status')).toMatch(/tablet .*:\d+ \(direct for \d+ s\)/);
  const explained = await run('explain', address);
  expect(explained).toMatch(/path +direct for \d+ s; attempt \d+ s ago, a path was found: /);
  expect(explained).toMatch(/:\d+ reached; this host: a NAT that keeps the port; tablet: /);
  expect(await diagnose()).toMatch(/the NAT of this host.*a NAT that keeps the port; connectors see /);

  const direct = (await peersOf()).find(({ name }) => name === 'tablet');
  await run('set', '--no-local-candidates');
  await run('reconcile');
  expect((await peersOf()).find(({ name }) => name === 'tablet')).toMatchObject({
    path: 'direct',
    since: direct?.since,
  });
  expect(await run('set', '--no-direct-paths')).toMatch(/~ firewall cpn0 .*\n +- direct paths\n/);
  expect(await run('status')).toContain('\noptions  --no-local-candidates --no-direct-paths\n');
  await eventually('the relay', async () =>
    (await peersOf()).some(({ name, path }) => name === 'tablet' && path === 'relayed'),
  );
  expect(await diagnose()).toMatch(/the NAT of this host.*direct paths are off/);
  expect(await run('explain', address)).toMatch(/path +relayed: direct paths are off on this host/);
  await eventually('the relay of the tablet', async () =>
    /path +relayed for \d+ s, as laptop left the direct path;/.test((await tablet.cpn(['explain', own])).stdout),
  );
  await run('set', '--direct-paths');
  await eventually('a direct path again', async () =>
    (await peersOf()).some(({ name, path }) => name === 'tablet' && path === 'direct'),
  );
});
