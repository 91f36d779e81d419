import { afterAll, beforeAll, expect, test } from 'vitest';
import { patiently } from '../e2e/office.ts';
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

/** The allowed IPs of each peer in WireGuard's table. */
async function allowedIps(host: Host): Promise<string> {
  return (await host.exec(['wg', 'show', 'cpn0', 'allowed-ips'])).stdout;
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

test('hosts behind two routers that exchange packets reach each other directly', async () => {
  await join(connector, '--type', 'connector', '--endpoint', `${connector.address}:51820`);
  const [own, address] = await Promise.all([
    join(laptop, '--type', 'admin_device'),
    join(tablet, '--type', 'admin_device'),
  ]);
  await eventually('the laptop reaches the tablet', async () => (await laptop.ping(address, patiently)).received === 1);
  await laptop.exec(['sh', '-c', `ping -i 0.2 -c 200 ${address} >/tmp/pings 2>&1 &`]);
  await eventually('a path of the laptop', async () => (await allowedIps(laptop)).includes(`${address}/32`), {
    timeoutMs: 60_000,
  });
  await eventually('a path of the tablet', async () => (await allowedIps(tablet)).includes(`${own}/32`), {
    timeoutMs: 10_000,
  });
  expect((await laptop.ping(address, patiently)).received).toBe(1);
});
