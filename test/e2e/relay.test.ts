import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { awaitRoute, cutPath, DataCenter, mendPath, serverAddress } from './data-center.ts';
import { patiently, status } from './office.ts';

let center: DataCenter;
let first: Host;
let second: Host;
let origin: Host;
let laptop: Host;
let tablet: Host;
/** The router that the laptop is behind. */
let home: Host;

beforeAll(async () => {
  center = await DataCenter.start();
  first = await center.addConnector(1);
  second = await center.addConnector(2);
  origin = await center.addOrigin('origin', '203.0.113.22');
  laptop = await center.addLaptop('laptop', '203.0.113.40');
  tablet = await center.addLaptop('tablet', '203.0.113.41');
  home = center.lab.hosts.get('laptop-home') as Host;
  for (const host of [laptop, tablet]) await center.awaitAnswers(host, first, second);
  await awaitRoute(laptop, first);
});
afterAll(() => center?.stop());

const arrives = async (from: Host, address: string): Promise<boolean> =>
  (await from.ping(address, patiently)).received === 1;

/** Waits until packets arrive: a host that roamed is found when it speaks, a detour when somebody misses an answer. */
const awaitArrival = (from: Host, address: string) =>
  eventually(`${from.name} reaches ${address}`, () => arrives(from, address), { timeoutMs: 60_000 });

test('two hosts that nobody can dial meet through the connector in service, and each reaches the LAN', async () => {
  expect(await arrives(laptop, center.address(tablet))).toBe(true);
  expect(await arrives(tablet, center.address(laptop))).toBe(true);
  expect(await arrives(laptop, serverAddress)).toBe(true);
  expect(await arrives(laptop, center.address(origin))).toBe(true);
});

test('with the path between one host and one connector cut, packets arrive both ways though the hosts differ', {
  timeout: 180_000,
}, async () => {
  await cutPath(home, first.address);
  await awaitRoute(laptop, second);
  await awaitRoute(tablet, first);
  expect(await arrives(laptop, serverAddress)).toBe(true);
  expect(await arrives(tablet, serverAddress)).toBe(true);
  expect(await arrives(laptop, center.address(tablet))).toBe(true);
  await awaitArrival(tablet, center.address(laptop));
  expect((await status(first)).warnings).toEqual(['laptop does not answer here; its packets go through edge-2']);
  expect(await status(first)).toMatchObject({
    peers: expect.arrayContaining([expect.objectContaining({ name: 'laptop', state: 'stale', allowed_ips: [] })]),
  });

  await mendPath(home);
  await eventually('the detour ends', async () => (await status(first)).warnings === undefined, { timeoutMs: 60_000 });
  await awaitArrival(tablet, center.address(laptop));
});

test('what is for a host that nobody hears is not sent around in circles, and both connectors say why', {
  timeout: 180_000,
}, async () => {
  await home.uplink.cut();
  const missing = tablet.spawn(['ping', '-n', '-i', '1', '-c', '120', center.address(laptop)]);
  for (const connector of [first, second]) {
    await eventually(
      `${connector.name} misses the laptop`,
      async () => (await status(connector)).warnings?.[0]?.startsWith('laptop does not answer here'),
      { timeoutMs: 60_000, everyMs: 500 },
    );
  }
  await missing.stop();
  const heardOf = async (name: string) =>
    (await status(second)).peers.find((peer: { name: string }) => peer.name === name).rx_bytes;
  const before = await heardOf('edge-1');
  expect(await tablet.ping(center.address(laptop), { count: 5 })).toMatchObject({ received: 0 });
  // Five packets of 128 bytes and what the connectors say to each other; in circles each would come by 30 times.
  expect((await heardOf('edge-1')) - before).toBeLessThan(6_000);
  await home.uplink.restore();
  await awaitArrival(tablet, center.address(laptop));
});

test('a laptop that roams goes on, and is found at its new address', { timeout: 120_000 }, async () => {
  const flow = laptop.spawn(['ping', '-n', '-i', '0.2', '-c', '1000', serverAddress]);
  await flow.waitForLine(/icmp_seq=3 ttl/);
  // Elsewhere, behind another router's address.
  await home.exec(['ip', '-batch', '-'], {
    input: 'address del 203.0.113.40/24 dev eth0\naddress add 203.0.113.45/24 dev eth0\n',
  });
  const seen = flow.output.stdout.length;
  await eventually('the same flow goes on', () => flow.output.stdout.length > seen + 300, { timeoutMs: 60_000 });
  await flow.stop();
  await eventually('the connector knows where it is', async () => {
    const { endpoint } = (await status(first)).peers.find((peer: { name: string }) => peer.name === 'laptop');
    return endpoint.startsWith('203.0.113.45:');
  });
  await awaitArrival(origin, center.address(laptop));
});

test('when the connector in service dies, hosts meet through the other', { timeout: 120_000 }, async () => {
  await first.uplink.cut();
  await awaitRoute(laptop, second);
  await awaitRoute(tablet, second);
  expect(await arrives(laptop, center.address(tablet))).toBe(true);
  expect(await arrives(tablet, center.address(laptop))).toBe(true);
});
