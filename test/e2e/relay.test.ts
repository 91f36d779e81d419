import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { awaitRoute, cutPath, DataCenter, restorePath, serverAddress } from './data-center.ts';
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

/** Waits until packets arrive: a host that roamed is found when it sends, a relay when a peer misses an answer. */
const awaitArrival = (from: Host, address: string) =>
  eventually(`${from.name} reaches ${address}`, () => arrives(from, address), { timeoutMs: 60_000 });

test('two hosts without endpoints reach each other through the connector in service, and each reaches the LAN', async () => {
  expect(await arrives(laptop, center.address(tablet))).toBe(true);
  expect(await arrives(tablet, center.address(laptop))).toBe(true);
  expect(await arrives(laptop, serverAddress)).toBe(true);
  expect(await arrives(laptop, center.address(origin))).toBe(true);
});

test('the connector sends no ICMP redirect into the tunnel for what it relays', async () => {
  expect(await laptop.ping(center.address(tablet), { count: 3 })).toMatchObject({ received: 3 });
  const { stdout } = await laptop.exec(['grep', '^Icmp:', '/proc/net/snmp']);
  const [names = [], counts = []] = stdout.split('\n').map((line) => line.split(' '));
  expect(counts[names.indexOf('InRedirects')]).toBe('0');
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

  await restorePath(home);
  await eventually('the relay ends', async () => (await status(first)).warnings === undefined, { timeoutMs: 60_000 });
  await awaitArrival(tablet, center.address(laptop));
});

test('packets for a silent host do not loop between the connectors, and both report why', {
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
  // Five packets of 128 bytes and the connectors' own; in a loop each would pass 30 times.
  expect((await heardOf('edge-1')) - before).toBeLessThan(6_000);
  await home.uplink.restore();
  await awaitArrival(tablet, center.address(laptop));
});

test('a laptop that roams goes on, and is found at its new address', { timeout: 120_000 }, async () => {
  const flow = laptop.spawn(['ping', '-n', '-i', '0.2', '-c', '1000', serverAddress]);
  await flow.waitForLine(/icmp_seq=(?:[3-9]|\d\d+) ttl/);
  // Elsewhere, behind another router's address.
  await home.exec(['ip', '-batch', '-'], {
    input: 'address del 203.0.113.40/24 dev eth0\naddress add 203.0.113.45/24 dev eth0\n',
  });
  const seen = flow.output.stdout.length;
  await eventually('the same flow goes on', () => flow.output.stdout.length > seen + 300, { timeoutMs: 60_000 });
  await flow.stop();
  await eventually('the connector has its new endpoint', async () => {
    const { endpoint } = (await status(first)).peers.find((peer: { name: string }) => peer.name === 'laptop');
    return endpoint.startsWith('203.0.113.45:');
  });
  await awaitArrival(origin, center.address(laptop));
});

test('a laptop that moves to another LAN probes its peers from there at once, in its present sessions', async () => {
  const cafe = await center.lab.addNat('cafe', { outside: '203.0.113.46/24', inside: '192.168.1.1/24' });
  const { public_key: key } = await status(laptop);
  const seenBy = async (host: Host, what: string) => {
    const { stdout } = await host.exec(['wg', 'show', 'cpn0', what]);
    return stdout.split('\n').find((line) => line.startsWith(key));
  };
  const handshakes = await Promise.all([first, second].map((host) => seenBy(host, 'latest-handshakes')));
  const mark = center.daemon(laptop).mark();
  await laptop.exec(['ip', 'link', 'set', 'eth0', 'down']);
  // The LAN has the same addresses as the one before: only its default route differs.
  await laptop.plug(cafe.segment, { address: '192.168.1.10/24', gateway: '192.168.1.1' });
  const message = 'the underlay changed; the peers in use were probed';
  const { answered, renewed } = await center.daemon(laptop).awaitLog('the probes', ({ msg }) => msg === message, mark);
  expect({ answered, renewed }).toMatchObject({ answered: expect.arrayContaining(['edge-1', 'edge-2']), renewed: [] });
  for (const host of [first, second]) expect(await seenBy(host, 'endpoints')).toContain('\t203.0.113.46:');
  expect(await Promise.all([first, second].map((host) => seenBy(host, 'latest-handshakes')))).toEqual(handshakes);
  expect(await arrives(laptop, serverAddress)).toBe(true);
});

test('when the connector in service dies, hosts reach each other through the other one', {
  timeout: 120_000,
}, async () => {
  await first.uplink.cut();
  await awaitRoute(laptop, second);
  await awaitRoute(tablet, second);
  expect(await arrives(laptop, center.address(tablet))).toBe(true);
  expect(await arrives(tablet, center.address(laptop))).toBe(true);
});
