import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { patiently } from '../e2e/office.ts';
import { builtProgram } from '../lab/built-program.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { nats } from '../lab/nat/nat.ts';
import type { Router } from '../lab/nat/router.ts';
import { DirectNetwork } from './direct-network.ts';
import { Losses } from './losses.ts';

let network: DirectNetwork;
let office: Router;
let cafe: Router;
let home: Router;
let laptop: Host;
let tablet: Host;
let losses: Losses;

beforeAll(async () => {
  network = await DirectNetwork.start();
  const { nat } = network;
  office = await nat.addRouter('office', nats.otherPort);
  cafe = await nat.addRouter('cafe', nats.portPreserving);
  home = await nat.addRouter('home', nats.portPreserving);
  [laptop, tablet] = [(await nat.addHost('laptop', office)).host, (await nat.addHost('tablet', home)).host];
  await network.join(laptop, tablet);
  await awaitAnswer();
  losses = await Losses.start(laptop, network.address(tablet));
  await network.awaitDirect(laptop, tablet);
});
afterAll(() => network?.[Symbol.asyncDispose]());

async function awaitAnswer(): Promise<void> {
  await eventually('the laptop reaches the tablet', async () => {
    return (await laptop.ping(network.address(tablet), patiently)).received === 1;
  });
}

/** Waits until both hosts use the relay, reach each other, and are direct again. */
async function awaitNextPath(): Promise<void> {
  await network.awaitRelayed(laptop, tablet);
  await awaitAnswer();
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

test('after an uplink that was down for seconds, the next path begins', async () => {
  const { stdout: route } = await tablet.exec(['ip', 'route', 'show', 'default']);
  await tablet.exec(['ip', 'link', 'set', 'eth0', 'down']);
  await network.awaitRelayed(laptop, tablet);
  await tablet.exec(['sh', '-ec', `ip link set eth0 up; ip route add ${route}`]);
  await awaitAnswer();
  await network.awaitDirect(laptop, tablet);
});

/** Lets 5 minutes pass at a signal. */
const clock = `
  const now = performance.now.bind(performance);
  let ahead = 0;
  performance.now = () => now() + ahead;
  process.on('SIGUSR2', () => { ahead += 300_000; });
`;

test('an idle path carries nothing but keepalives, and ends after 5 minutes', async () => {
  await network.kill(tablet);
  await network.startDaemon(tablet, { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(clock)}` });
  await losses.stop();
  await sleep(5_000);
  const capture = tablet.spawn(['tcpdump', '-n', '-l', '-i', 'eth0', 'udp and greater 500']);
  await capture.waitForLine(/^listening on eth0/);
  await sleep(10_000);
  const packets = (await capture.stop()).stdout.split('\n').filter((line) => line !== '');
  // After the use, each host probes the path once, which takes four packets.
  expect(packets.length).toBeLessThanOrEqual(8);
  expect(await network.areDirect(laptop, tablet)).toBe(true);
  network.daemon(tablet).process.signal('SIGUSR2');
  await network.awaitRelayed(laptop, tablet);
  await eventually('each host has the connector alone, and so no other keepalives', async () => {
    const peers = [laptop, tablet].map((host) => host.exec(['wg', 'show', 'cpn0', 'peers']));
    return (await Promise.all(peers)).every(({ stdout }) => stdout.trim().split('\n').length === 1);
  });
});

test('without the daemon, a path whose session is dead ends at the next pass', async () => {
  const flow = await Losses.start(laptop, network.address(tablet));
  await network.awaitDirect(laptop, tablet);
  await network.kill(tablet);
  const drop = `table ip dead { chain c { type filter hook forward priority -10; ip saddr ${home.address} drop; }; }`;
  await cafe.host.exec(['nft', '-f', '-'], { input: drop });
  await eventually('the laptop uses the relay', async () => !(await network.isDirect(laptop, tablet)));
  await flow.stop();
  const ping = async () => (await laptop.ping(network.address(tablet))).received;
  await tablet.cpn(['reconcile']);
  expect([await ping(), await network.isDirect(tablet, laptop)]).toEqual([0, true]);
  // The session is 3 minutes old for this pass alone.
  const pass = ['faketime', '-f', '+190s', await builtProgram(), 'reconcile'];
  await tablet.exec(pass, { env: { FAKETIME_DONT_FAKE_MONOTONIC: '1' } });
  expect(await network.isDirect(tablet, laptop)).toBe(false);
  await awaitAnswer();
});
