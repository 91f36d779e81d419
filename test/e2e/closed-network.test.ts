import { afterAll, beforeAll, expect, test } from 'vitest';
import { joinHost } from '../lab/control-plane.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import type { SetRulesRequest } from '../lab/owner.ts';
import { DataCenter, lanRoute, serverAddress } from './data-center.ts';
import { NumberedSession, serveEchoes } from './numbered-session.ts';
import { patiently, plan } from './office.ts';

/**
 * A closed network: a connector that masquerades, a server behind it with a route back, an origin, and a laptop behind NAT. Each host of
 * the network runs the daemon.
 */
let center: DataCenter;
let connector: Host;
let origin: Host;
let laptop: Host;
let server: Host;

type Rules = SetRulesRequest['rules'];
const [echoes, ssh] = ['8081', '2222'];
const toOrigin = { name: 'origin', from: ['peer:laptop'], to: ['peer:origin'], protocol: 'tcp', ports: [echoes, ssh] };
const toServer = { name: 'server', from: ['tag:ops'], to: [`cidr:${serverAddress}`], protocol: 'tcp', ports: [echoes] };
const fromLan = { name: 'lan', from: [`route:${lanRoute}`], to: ['tag:web'], protocol: 'tcp', ports: [echoes] };
const all: Rules = [toOrigin, toServer, fromLan];

beforeAll(async () => {
  center = await DataCenter.start();
  server = center.server;
  connector = await center.addConnector(1);
  origin = await center.addOrigin('origin', '203.0.113.22');
  laptop = await center.addLaptop('laptop', '203.0.113.40');
  await server.exec(['ip', 'route', 'add', '10.77.0.0/24', 'via', '192.168.50.1']);
  await center.awaitAnswers(laptop, connector, origin);
  for (const host of [origin, server]) await serveEchoes(host);
  const peers = await center.owner.listPeers(center.network);
  const idOf = (host: Host) => peers.find(({ name }) => name === host.name)?.id ?? 0;
  await center.owner.setTags(center.network, idOf(laptop), ['ops']);
  await center.owner.setTags(center.network, idOf(origin), ['web', 'prod']);
}, 120_000);
afterAll(() => center?.stop());

/** Sets the rules, and waits until each host has them. */
async function close(rules: Rules, changes: Partial<SetRulesRequest> = {}): Promise<void> {
  await center.owner.setRules(center.network, { mode: 'closed', rules, ...changes });
  await settle();
}

async function settle(): Promise<void> {
  const { revision } = JSON.parse((await center.controlPlane.cpn(['network', 'show', 'office', '--json'])).stdout);
  for (const host of [connector, origin, laptop]) {
    await eventually(`${host.name} has revision ${revision}`, async () => {
      const { stdout } = await host.exec(['sh', '-c', 'cat "$CPN_STATE_DIR"/cpn0.json']);
      return new RegExp(`"revision": *"\\\\"${revision}-`).test(stdout);
    });
    await eventually(`nothing is left to do at ${host.name}`, async () => (await plan(host)).changes.length === 0);
  }
}

/** How a TCP connection ends: `open`, the error of the system, or `silent`. */
async function dial(from: Host, address: string, port = echoes): Promise<string> {
  const script = `const socket = require('net').connect(${port}, '${address}');
    const end = (text) => { console.log(text); process.exit(); };
    socket.setTimeout(4000, () => end('silent')).on('connect', () => end('open')).on('error', ({ code }) => end(code));`;
  return (await from.exec(['node', '-e', script])).stdout.trim();
}

const addresses = () => ({ origin: center.address(origin), laptop: center.address(laptop) });

test('sessions of an open network that the rules allow survive its closing, whichever side sends; others end', async () => {
  const at = addresses();
  const kept = [await NumberedSession.ssh(laptop, origin, at.origin), await NumberedSession.tcp(laptop, serverAddress)];
  const hidden = await NumberedSession.tcp(server, at.origin);
  // The origin sends, and the laptop only acknowledges.
  const stream = `const socket = require('net').connect(${echoes}, '${at.origin}'); let bytes = 0;
    socket.on('data', (data) => { bytes += data.length; console.log('bytes', bytes); }).on('error', ({ code }) => console.log(code));
    setInterval(() => socket.write('x'), 100);`;
  const ended = server.spawn(['node', '-e', stream.replace(at.origin, at.laptop)], { holdInput: true });
  await serveEchoes(laptop);
  const doomed = server.spawn(['node', '-e', stream.replace(at.origin, at.laptop)], { holdInput: true });
  await doomed.waitForLine(/^bytes/);
  await close(all);
  for (const session of kept) await session.goesOn();
  // The connector masqueraded it. A closed network does not.
  expect([hidden.seen, await hidden.loss()]).toEqual([
    center.address(connector),
    expect.stringContaining('ECONNRESET'),
  ]);
  const count = () => doomed.output.stdout.split('\n').length;
  await eventually('the other session carries nothing', async () => {
    const before = count();
    await new Promise((resolve) => setTimeout(resolve, 500));
    return count() === before;
  });
  await ended.stop();
  await doomed.stop();
}, 60_000);

test('only what a rule allows passes, and the rest is refused at once', async () => {
  const at = addresses();
  await close(all);
  expect(await dial(laptop, at.origin)).toBe('open');
  expect(await dial(laptop, at.origin, ssh)).toBe('open');
  expect(await dial(laptop, serverAddress)).toBe('open');
  expect(await dial(laptop, at.origin, '22')).toBe('EHOSTUNREACH');
  expect(await dial(laptop, serverAddress, ssh)).toBe('EHOSTUNREACH');
  expect(await dial(origin, serverAddress)).toBe('EHOSTUNREACH');
  expect(await dial(origin, at.laptop)).toBe('EHOSTUNREACH');
});

test('the status of a host counts and names what it refused', async () => {
  const { stdout } = await laptop.cpn(['status', '--json']);
  const { rules } = JSON.parse(stdout).networks[0];
  expect(rules).toMatchObject({ mode: 'closed', count: all.length });
  expect(rules.refused.packets.out).toBeGreaterThan(0);
  expect(rules.refused.latest).toContainEqual({
    ...{ from: addresses().laptop, to: addresses().origin, protocol: 'tcp', port: 22, seconds: expect.any(Number) },
  });
  const text = (await laptop.cpn(['status'])).stdout;
  expect(text).toMatch(/^rules {2}closed, 3 rules$/m);
  expect(text).toMatch(/^refused in the last 5 minutes: .*this host → origin tcp 22/m);
});

test('peers answer pings, and addresses behind a connector only where a rule allows it', async () => {
  const at = addresses();
  expect(await origin.ping(at.laptop, patiently)).toMatchObject({ received: 1 });
  expect(await laptop.ping(serverAddress)).toMatchObject({ received: 0 });
  await close([...all, { name: 'ping', from: ['tag:ops'], to: [`route:${lanRoute}`], protocol: 'icmp' }]);
  expect(await laptop.ping(serverAddress, patiently)).toMatchObject({ received: 1 });
  await close(all);
  expect(await laptop.ping(serverAddress)).toMatchObject({ received: 0 });
});

test('a connection that the LAN begins keeps its source, and needs a rule, also to its own connector', async () => {
  const session = await NumberedSession.tcp(server, center.address(origin));
  expect(session.seen).toBe(serverAddress);
  expect(await dial(server, center.address(laptop))).toBe('EHOSTUNREACH');
  expect(await dial(server, center.address(connector))).toBe('EHOSTUNREACH');
  expect(await dial(server, '192.168.50.1')).toBe('ECONNREFUSED');
});

test('a session ends when its rule goes, and another stays', async () => {
  const kept = await NumberedSession.tcp(laptop, center.address(origin));
  const doomed = await NumberedSession.tcp(laptop, serverAddress);
  await close([toOrigin, fromLan]);
  const { count } = doomed;
  await kept.goesOn();
  expect(doomed.count).toBeLessThan(count + 3);
  await close(all);
}, 30_000);

test('a tag decides, and goes with its peer', async () => {
  const peers = await center.owner.listPeers(center.network);
  const id = peers.find(({ name }) => name === laptop.name)?.id ?? 0;
  await center.owner.setTags(center.network, id, []);
  await settle();
  expect(await dial(laptop, serverAddress)).toBe('EHOSTUNREACH');
  await center.owner.setTags(center.network, id, ['ops']);
  await settle();
  expect(await dial(laptop, serverAddress)).toBe('open');
});

test('the rules come back after another program flushed them, and hold without a daemon', async () => {
  await origin.exec(['nft', 'flush', 'ruleset']);
  await eventually(
    'the filter is back',
    async () => (await dial(laptop, center.address(origin), '22')) !== 'ECONNREFUSED',
  );
  await center.daemon(connector).stop();
  expect(await dial(laptop, serverAddress, ssh)).toBe('EHOSTUNREACH');
  expect(await dial(laptop, serverAddress)).toBe('open');
  await center.restartDaemon(connector);
});

test('explain names the rule and the hosts that decide', async () => {
  const explain = async (...args: string[]) => {
    const { stdout, exitCode } = await laptop.cpn(['explain', ...args, '--json'], { allowFailure: true });
    const { checks, stops_at } = JSON.parse(stdout) as {
      checks: { check: string; detail: string }[];
      stops_at: string;
    };
    return { exitCode, stops_at, detail: checks.find(({ check }) => check === 'rules')?.detail };
  };
  expect(await explain('origin', '--port', ssh)).toEqual({
    exitCode: 0,
    stops_at: null,
    detail: `rule "origin" allows tcp ${ssh}; decided at this host and origin`,
  });
  expect(await explain(serverAddress, '--port', '443')).toEqual({
    exitCode: 3,
    stops_at: 'rules',
    detail: expect.stringMatching(
      /^no rule of the closed network allows tcp 443; decided at this host and edge-1; an owner/,
    ),
  });
  expect(await explain(serverAddress)).toMatchObject({
    detail: expect.stringContaining('rule "server" allows tcp 8081'),
  });
});

test('a host that joins makes a handshake, and no datagram that starts one counts as refused', async () => {
  const guest = await center.lab.addHost('guest', { address: '203.0.113.23/24' });
  const flags = ['--wait', '30', '--endpoint', '203.0.113.23:51820'];
  const joined = await joinHost(center.controlPlane, guest, { network: 'office', flags });
  expect(joined.handshake).toBe(true);
  await guest.exec(['bash', '-c', `echo >/dev/udp/${center.address(origin)}/9`]);
  await guest.exec(['bash', '-c', `: </dev/tcp/${center.address(origin)}/9`], { allowFailure: true });
  const { stdout } = await origin.exec(['nft', 'list', 'set', 'inet', 'cpn_cpn0', 'denied']);
  expect(stdout).not.toContain(joined.address);
});

test('an open network allows everything again, and masquerades what a LAN begins', async () => {
  const shown = await NumberedSession.tcp(server, center.address(origin));
  await center.owner.setRules(center.network, { mode: 'open', rules: all });
  await settle();
  expect(await dial(origin, serverAddress, ssh)).toBe('open');
  expect(await laptop.ping(serverAddress, patiently)).toMatchObject({ received: 1 });
  expect([shown.seen, await shown.loss()]).toEqual([serverAddress, expect.stringContaining('ECONNRESET')]);
});
