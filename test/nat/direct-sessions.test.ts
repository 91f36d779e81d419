import { afterAll, beforeAll, expect, test } from 'vitest';
import { NumberedSession, serveEchoes, sessionPorts } from '../e2e/numbered-session.ts';
import { patiently } from '../e2e/office.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { nats } from '../lab/nat/nat.ts';
import type { Router } from '../lab/nat/router.ts';
import { Owner } from '../lab/owner.ts';
import { DirectNetwork } from './direct-network.ts';
import { Losses } from './losses.ts';

/** More for measurements: `CPN_PATH_SWITCHES=20`. */
const switches = Number(process.env.CPN_PATH_SWITCHES ?? 2);

let network: DirectNetwork;
let routers: readonly Router[];
let laptop: Host;
let tablet: Host;
let sessions: readonly NumberedSession[];
let losses: Losses;

beforeAll(async () => {
  network = await DirectNetwork.start();
  const { nat } = network;
  routers = await Promise.all(['office', 'home'].map((name) => nat.addRouter(name, nats.otherPort)));
  const [office, home] = routers as [Router, Router];
  [laptop, tablet] = [(await nat.addHost('laptop', office)).host, (await nat.addHost('tablet', home)).host];
  await network.join(laptop, tablet);
  const address = network.address(tablet);
  await serveEchoes(tablet);
  await eventually('the laptop reaches the tablet', async () => (await laptop.ping(address, patiently)).received === 1);
  await Promise.all([laptop, tablet].map(countResets));
  sessions = [await NumberedSession.tcp(laptop, address), await NumberedSession.ssh(laptop, tablet, address)];
  losses = await Losses.start(laptop, address);
});
afterAll(() => network?.[Symbol.asyncDispose]());

/** Counts TCP resets of the sessions. The daemons' own probes of closed ports get some. */
async function countResets(host: Host): Promise<void> {
  const resets = ['sport', 'dport'].map((port) => `tcp flags rst tcp ${port} { ${sessionPorts.join(', ')} } counter;`);
  const chain = (hook: string) => `chain ${hook} { type filter hook ${hook} priority -300; ${resets.join(' ')} }\n`;
  await host.exec(['nft', '-f', '-'], { input: `table inet resets {\n${chain('input')}${chain('output')}}` });
}

async function expectSessions(): Promise<void> {
  await Promise.all(sessions.map((session) => session.goesOn()));
  for (const host of [laptop, tablet]) {
    const { stdout } = await host.exec(['nft', 'list', 'table', 'inet', 'resets']);
    expect(stdout.match(/packets \d+/g)).toEqual(Array(4).fill('packets 0'));
  }
}

async function expectDirect(): Promise<void> {
  expect(await Promise.all([network.isDirect(laptop, tablet), network.isDirect(tablet, laptop)])).toEqual([true, true]);
}

/** The NAT of the laptop takes another port, which ends the path. Waits for the next one. */
async function switchBackAndForth(): Promise<void> {
  await routers[0]?.rebind();
  await network.awaitRelayed(laptop, tablet);
  await expectSessions();
  losses.mark('to the relay');
  await network.awaitDirect(laptop, tablet);
  await expectSessions();
  losses.mark('to direct');
}

test('a TCP stream and an ssh session survive each switch to a direct path and back', async () => {
  await network.awaitDirect(laptop, tablet);
  losses.mark('to direct');
  for (let round = 0; round < switches; round += 1) await switchBackAndForth();
  process.stdout.write(`\n${losses.report()}\n`);
});

test('they survive the closing of the network, by rules, on a direct path', async () => {
  await network.awaitDirect(laptop, tablet);
  const sessions = { name: 'sessions', from: ['peer:laptop'], to: ['peer:tablet'] };
  await new Owner(network.controlPlane).setRules(network.joined(laptop).network.id, {
    mode: 'closed',
    rules: [sessions],
  });
  const dial = ['timeout', '3', 'bash', '-c', `: </dev/tcp/${network.address(laptop)}/7`];
  await eventually('the other direction is refused', async () => {
    return (await tablet.exec(dial, { allowFailure: true })).stderr.includes('No route to host');
  });
  await expectSessions();
  await switchBackAndForth();
});

test('a path that dies in flight gives way to the relay, on both hosts', async () => {
  const [office, home] = routers as [Router, Router];
  const drop = `table ip dead { chain c { type filter hook forward priority -10; ip saddr ${home.address} drop; }; }`;
  await office.host.exec(['nft', '-f', '-'], { input: drop });
  await network.awaitRelayed(laptop, tablet);
  await expectSessions();
  await office.host.exec(['nft', 'delete', 'table', 'ip', 'dead']);
  await switchBackAndForth();
});

test('a path carries on while its daemons restart or die, and without the control plane', async () => {
  const before = await network.received(laptop, tablet);
  await network.kill(tablet);
  await network.startDaemon(tablet);
  await network.daemon(laptop).stop();
  await network.startDaemon(laptop);
  network.controlPlane.process.signal('SIGSTOP');
  await expectSessions();
  await expectDirect();
  network.controlPlane.process.signal('SIGCONT');
  expect(await network.received(laptop, tablet)).toBeGreaterThan(before);
});

test('the other host returns to the relay after wg-quick brought one up from its file', async () => {
  await network.kill(laptop);
  await laptop.exec(['ip', 'link', 'delete', 'cpn0']);
  await laptop.exec(['wg-quick', 'up', 'cpn0']);
  // The interface has another port. This NAT has one port for the host, which the former flow still uses.
  await routers[0]?.rebind();
  await network.awaitRelayed(laptop, tablet);
  await expectSessions();
  await network.startDaemon(laptop);
  await expectSessions();
  expect(await Promise.all(sessions.map((session) => session.end()))).toEqual(['complete', 'complete']);
});
