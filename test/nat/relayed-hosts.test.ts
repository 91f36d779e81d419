import { afterAll, beforeAll, expect, test } from 'vitest';
import { patiently, status } from '../e2e/office.ts';
import { type ControlPlane, joinHost, startControlPlane } from '../lab/control-plane.ts';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { nats } from '../lab/nat/nat.ts';
import { NatLab } from '../lab/nat/nat-lab.ts';
import type { Router } from '../lab/nat/router.ts';

let nat: NatLab;
let controlPlane: ControlPlane;
const daemons: Daemon[] = [];
let connector: Host;
let laptop: Host;
let tablet: Host;
let router: Router;

async function join(host: Host, ...flags: string[]): Promise<string> {
  const { address } = await joinHost(controlPlane, host, { network: 'office', flags: ['--wait', '0', ...flags] });
  daemons.push(await startDaemon(host));
  return address;
}

beforeAll(async () => {
  nat = await NatLab.start({ commandServers: true });
  controlPlane = await startControlPlane(nat.lab);
  await controlPlane.cpn(['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/24']);
  connector = await nat.lab.addHost('connector', { address: '203.0.113.2/24' });
  router = await nat.addRouter('office-router', nats.symmetric);
  const carrier = await nat.addRouter('carrier', nats.portPreserving, nat.far, '100.64.0.');
  const home = await nat.addRouter('home-router', nats.portPreserving, carrier);
  laptop = (await nat.addHost('laptop', router)).host;
  tablet = (await nat.addHost('tablet', home)).host;
});
afterAll(async () => {
  await Promise.all(daemons.map((daemon) => daemon.stop()));
  await nat?.[Symbol.asyncDispose]();
});

test('hosts behind two kinds of NAT join, and reach each other through the connector', async () => {
  await join(connector, '--type', 'connector', '--endpoint', `${connector.address}:51820`);
  const [, address] = await Promise.all([
    join(laptop, '--type', 'admin_device'),
    join(tablet, '--type', 'admin_device'),
  ]);
  await eventually('the laptop reaches the tablet', async () => (await laptop.ping(address, patiently)).received === 1);
  const { peers } = await status(connector);
  const endpointOf = (name: string) => peers.find((peer: { name: string }) => peer.name === name).endpoint;
  expect(endpointOf('laptop').split(':')[0]).toBe(router.address);
  expect(endpointOf('tablet').split(':')[0]).toBe(nat.lab.hosts.get('carrier')?.address);
});
