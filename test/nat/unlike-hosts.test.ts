import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { NumberedSession, serveEchoes, sessionPorts } from '../e2e/numbered-session.ts';
import { patiently } from '../e2e/office.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { nats } from '../lab/nat/nat.ts';
import type { Router } from '../lab/nat/router.ts';
import { DirectNetwork, type HostPair } from './direct-network.ts';
import { Losses } from './losses.ts';

/** Milliseconds after which a path was no false start: the next one begins at once. */
const steadyMs = 31_000;

/** Two hosts on a direct path. */
interface Reached {
  readonly pair: HostPair;
  readonly losses: Losses;
  readonly since: number;
}

/** A host, and a session of another one with it. */
interface Server {
  readonly pair: HostPair;
  readonly session: NumberedSession;
}

let network: DirectNetwork;
let office: Router;
let home: Router;
/** The first one's tunnel has another MTU. */
let unlike: Reached;
/** Both behind IPv6 firewalls. */
let firewalled: Reached;
let flat: Router;
let servers: readonly Server[];
let serversSince: number;

beforeAll(async () => {
  network = await DirectNetwork.start();
});
afterAll(() => network?.[Symbol.asyncDispose]());

async function awaitAnswer(from: Host, to: Host): Promise<void> {
  const address = network.address(to);
  await eventually(`${to.name} answers`, async () => (await from.ping(address, patiently)).received === 1);
}

async function awaitPath(...pair: HostPair): Promise<Reached> {
  const [from, to] = pair;
  await awaitAnswer(from, to);
  const losses = await Losses.start(from, network.address(to));
  await network.awaitDirect(from, to);
  return { pair, losses, since: performance.now() };
}

/** The path is in use. */
async function awaitSteady({ since }: Reached): Promise<void> {
  await sleep(Math.max(0, since + steadyMs - performance.now()));
}

/** A clock that stops while the process is stopped, as Linux's does while a host sleeps. */
const sleepingClock = `
  const now = performance.now.bind(performance);
  let [before, slept] = [now(), 0];
  performance.now = () => {
    const at = now();
    if (at - before > 10_000) slept += at - before;
    before = at;
    return at - slept;
  };
  setInterval(() => performance.now(), 500).unref();
`;

test('hosts with another MTU in the tunnel get a direct path', async () => {
  home = await network.nat.addRouter('home', nats.otherPort);
  office = await network.nat.addRouter('office', nats.portPreserving);
  const [laptop, tablet] = [await network.nat.addHost('laptop', office), await network.nat.addHost('tablet', home)];
  await network.joinWith(laptop.host, '--mtu', '1300');
  await network.join(tablet.host);
  // For the sleep below.
  await network.kill(tablet.host);
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(sleepingClock)}`;
  await network.startDaemon(tablet.host, { NODE_OPTIONS });
  unlike = await awaitPath(laptop.host, tablet.host);
});

test('hosts behind IPv6 firewalls that send from another address than the first get a direct path', async () => {
  const hosts: Host[] = [];
  for (const name of ['desk', 'tower']) {
    const router = await network.nat.addRouter(`${name}-router`, nats.ipv6);
    const { host } = await network.nat.addHost(name, router);
    // As a temporary address (RFC 8981): the system prefers it, and lists it first.
    const { stdout } = await host.exec(['ip', '-6', '-br', 'address', 'show', 'dev', 'eth0', 'scope', 'global']);
    const [, prefix = ''] = /(2001:db8::\S*:)10\/112/.exec(stdout) ?? [];
    const batch = [
      `address add ${prefix}11/112 dev eth0 nodad`,
      `route replace default via ${prefix}1 dev eth0 src ${prefix}11`,
    ];
    await host.exec(['ip', '-6', '-batch', '-'], { input: `${batch.join('\n')}\n` });
    await network.join(host);
    hosts.push(host);
  }
  const [desk, tower] = hosts as [Host, Host];
  firewalled = await awaitPath(desk, tower);
});

/** A host whose firewall drops packets from the tunnel. */
const walled = (rules: string) => [
  'nft',
  `table inet wall {
    chain tunnel { ${rules}; }
    chain input { type filter hook input priority 0; iifname cpn0 jump tunnel; }
  }`,
];

/** Joins a host after a command, and begins a session with it. */
async function addServer(from: Host, name: string, command: readonly string[]): Promise<Server> {
  const { host } = await network.nat.addHost(name, flat);
  await host.exec(command);
  await Promise.all([network.join(host), serveEchoes(host)]);
  const address = network.address(host);
  const dial = ['timeout', '5', 'bash', '-c', `: </dev/tcp/${address}/${sessionPorts[0]}`];
  await eventually(`${name} answers`, async () => (await from.exec(dial, { allowFailure: true })).exitCode === 0);
  return { pair: [from, host], session: await NumberedSession.tcp(from, address) };
}

test('a host without IPv6, and one that drops echoes, get a direct path, and one that drops all else none', async () => {
  const [laptop] = unlike.pair;
  const { host: desktop } = await network.nat.addHost('desktop', office);
  await network.join(desktop);
  flat = await network.nat.addRouter('flat', nats.portPreserving);
  const plain = await addServer(laptop, 'plain', ['sysctl', '-qw', 'net.ipv6.conf.all.disable_ipv6=1']);
  await network.awaitDirect(...plain.pair);
  const echoes = 'icmp type echo-request drop; icmpv6 type echo-request drop';
  const deaf = await addServer(desktop, 'deaf', walled(echoes));
  await network.awaitDirect(...deaf.pair);
  const rest = `ct state established accept; tcp dport ${sessionPorts[0]} accept; drop`;
  const shut = await addServer(laptop, 'shut', walled(rest));
  servers = [plain, deaf, shut];
  await eventually('a path that does not answer ends', async () => {
    return (await pathsOf(shut)).includes('relayed');
  });
  serversSince = performance.now();
});

/** The paths that a pair had, as the events of the network state them. */
async function pathsOf({ pair }: Server): Promise<string[]> {
  const { cpn } = network.controlPlane;
  const { stdout } = await cpn(['events', 'office', '--type', 'path.changed', '--limit', '1000', '--json']);
  const { events } = JSON.parse(stdout) as { events: { details: { with: { name: string }; path: string } }[] };
  return events.filter(({ details }) => details.with.name === pair[1].name).map(({ details }) => details.path);
}

test('a host that rotates its key gets a path with the new key, and nothing of the former key stays', async () => {
  const { pair, losses } = firewalled;
  const [desk, tower] = pair;
  await awaitSteady(firewalled);
  const { public_key: former } = network.joined(tower);
  losses.mark('before');
  const { stdout } = await tower.cpn(['rotate-key', '--yes', '--json']);
  const { public_key: key } = JSON.parse(stdout).networks[0];
  const dump = async () => (await desk.exec(['wg', 'show', 'cpn0', 'dump'])).stdout;
  await eventually('the other host has no trace of the former key', async () => !(await dump()).includes(former));
  // An attempt that began with the former key fails, and the next one follows half a minute later.
  await eventually('they have a direct path', () => network.areDirect(...pair), { timeoutMs: 120_000 });
  expect((await dump()).split('\n').find((line) => line.includes(`${network.address(tower)}/32`))).toContain(key);
  await awaitAnswer(...pair);
  expect(losses.mark('rotation')).toBeLessThan(10_000);
  process.stdout.write(`\n${losses.report()}\n`);
});

test('a host that slept while its NAT forgot it uses the relay at once, and the next path begins', {
  // On a busy machine, two attempts may fail: the next ones follow half a minute and a minute later.
  timeout: 360_000,
}, async () => {
  const { pair, losses } = unlike;
  const [laptop, tablet] = pair;
  const signal = async (name: 'STOP' | 'CONT') => {
    await tablet.exec(['sh', '-c', `kill -${name} $(pidof wireguard-go)`]);
    network.daemon(tablet).process.signal(`SIG${name}`);
  };
  losses.mark('before the sleep');
  // A process that stands still cannot be ended.
  onTestFinished(() => network.daemon(tablet).process.signal('SIGCONT'));
  await signal('STOP');
  await home.rebind();
  // Messages of before are void after 15 s.
  await sleep(22_000);
  expect(await network.isDirect(laptop, tablet)).toBe(false);
  losses.mark('the sleep');
  await signal('CONT');
  await eventually('the tablet answers', async () => (await laptop.ping(network.address(tablet))).received === 1);
  losses.mark('until the relay is used');
  await network.awaitDirect(...pair);
  losses.mark('until the next path');
  process.stdout.write(`\n${losses.report()}\n`);
});

test('paths of hosts without IPv6 or behind firewalls do not flap, and their sessions never stop for long', async () => {
  await sleep(Math.max(0, serversSince + 20_000 - performance.now()));
  expect(await Promise.all(servers.map(pathsOf))).toEqual([['direct'], ['direct'], ['direct', 'relayed']]);
  const gaps = servers.map(({ session }) => session.longestGapSince(0));
  expect(Math.max(...gaps)).toBeLessThan(10_000);
  process.stdout.write(`\n${gaps.join(' ms, ')} ms without an echo\n`);
});
