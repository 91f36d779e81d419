import { afterAll, beforeAll, expect, test } from 'vitest';
import { patiently, status } from '../e2e/office.ts';
import { eventually } from '../lab/eventually.ts';
import { nats } from '../lab/nat/nat.ts';
import { DirectNetwork } from './direct-network.ts';

let network: DirectNetwork;

beforeAll(async () => {
  network = await DirectNetwork.start();
});
afterAll(() => network?.[Symbol.asyncDispose]());

test('hosts behind two kinds of NAT join, and reach each other through the connector', async () => {
  const { nat } = network;
  const router = await nat.addRouter('office-router', nats.symmetric);
  const carrier = await nat.addRouter('carrier', nats.portPreserving, nat.far, '100.64.0.');
  const home = await nat.addRouter('home-router', nats.portPreserving, carrier);
  const [laptop, tablet] = [(await nat.addHost('laptop', router)).host, (await nat.addHost('tablet', home)).host];
  await network.join(laptop, tablet);
  const address = network.address(tablet);
  await eventually('the laptop reaches the tablet', async () => (await laptop.ping(address, patiently)).received === 1);
  const connector = nat.lab.hosts.get('connector-1');
  if (connector === undefined) return expect.unreachable();
  const { peers } = await status(connector);
  const endpointOf = (name: string) => peers.find((peer: { name: string }) => peer.name === name).endpoint;
  expect(endpointOf('laptop').split(':')[0]).toBe(router.address);
  expect(endpointOf('tablet').split(':')[0]).toBe(carrier.address);
});
