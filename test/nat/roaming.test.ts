import { afterAll, beforeAll, test } from 'vitest';
import { patiently } from '../e2e/office.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { nats } from '../lab/nat/nat.ts';
import type { Router } from '../lab/nat/router.ts';
import { DirectNetwork } from './direct-network.ts';
import { Losses } from './losses.ts';

let network: DirectNetwork;
let office: Router;
let cafe: Router;
let laptop: Host;
let tablet: Host;

beforeAll(async () => {
  network = await DirectNetwork.start();
  const { nat } = network;
  office = await nat.addRouter('office', nats.otherPort);
  cafe = await nat.addRouter('cafe', nats.portPreserving);
  const home = await nat.addRouter('home', nats.portPreserving);
  [laptop, tablet] = [(await nat.addHost('laptop', office)).host, (await nat.addHost('tablet', home)).host];
  await network.join(laptop, tablet);
  const address = network.address(tablet);
  await eventually('the laptop reaches the tablet', async () => (await laptop.ping(address, patiently)).received === 1);
  await Losses.start(laptop, address);
  await network.awaitDirect(laptop, tablet);
});
afterAll(() => network?.[Symbol.asyncDispose]());

/** Waits until both hosts use the relay, reach each other, and are direct again. */
async function awaitNextPath(): Promise<void> {
  await network.awaitRelayed(laptop, tablet);
  await eventually('the laptop reaches the tablet', async () => {
    return (await laptop.ping(network.address(tablet), patiently)).received === 1;
  });
  await network.awaitDirect(laptop, tablet);
}

test('a path whose NAT takes another port in flight gives way to the relay, and the next one begins', async () => {
  await office.rebind();
  await awaitNextPath();
});

test('a host that moves behind another router uses the relay at once, and the next path begins', async () => {
  await laptop.exec(['ip', 'link', 'set', 'eth0', 'down']);
  await laptop.plug(cafe.segment, cafe.assign());
  await awaitNextPath();
});
