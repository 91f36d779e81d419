import { afterAll, beforeAll, expect, test } from 'vitest';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import type { Process } from '../lab/process.ts';
import { DataCenter, lanRoute } from './data-center.ts';
import { NumberedSession, serveEchoes } from './numbered-session.ts';
import { awaitRelay, awaitReturn } from './relays.ts';
import { call, listen } from './tcp.ts';

/**
 * Two hosts without endpoints, each behind a NAT, with sessions over the relay. One of the connectors takes up no TCP connection in the
 * middle (`nf_conntrack_tcp_loose`).
 */
let center: DataCenter;
let connectors: readonly Host[];
let laptop: Host;
let tablet: Host;
let sessions: readonly NumberedSession[];
/** A transfer without an end, whose receiver prints a line each second. */
let transfer: Process;
let receiver: Process;

beforeAll(async () => {
  center = await DataCenter.start();
  connectors = [await center.addConnector(1), await center.addConnector(2)];
  await connectors[1]?.exec(['sh', '-c', 'echo 0 >/proc/sys/net/netfilter/nf_conntrack_tcp_loose']);
  laptop = await center.addLaptop('laptop', '203.0.113.40');
  tablet = await center.addLaptop('tablet', '203.0.113.41');
  for (const host of [laptop, tablet]) await center.awaitAnswers(host, ...connectors);
  await serveEchoes(tablet);
  receiver = tablet.spawn(['iperf3', '--server', '--forceflush']);
  await receiver.waitForLine(/Server listening/);
  const address = center.address(tablet);
  await listen(tablet);
  await eventually('the relay keeps addresses', async () => (await call(laptop, address)) === center.address(laptop));
  sessions = [await NumberedSession.tcp(laptop, address), await NumberedSession.ssh(laptop, tablet, address)];
  const load = ['--bitrate', '400K', '--length', '5K', '--time', '600'];
  transfer = laptop.spawn(['iperf3', '--client', address, ...load]);
}, 120_000);
afterAll(() => center?.stop());

/** Waits until every session goes on. */
async function expectSessions(): Promise<void> {
  for (const session of sessions) await session.goesOn();
  const intervals = () => receiver.output.stdout.match(/ (?!0\.00 )[\d.]+ [KM]Bytes +\S+ [KM]bits\/sec/g)?.length ?? 0;
  const goal = intervals() + 2;
  await eventually('the transfer goes on', () => transfer.pid === undefined || intervals() >= goal);
  expect(transfer.pid, transfer.output.stderr).toBeDefined();
}

const findRelay = (not?: Host) => awaitRelay([laptop, tablet], connectors, not);

test('the relay keeps the address of a sender, for TCP, UDP and ICMP', async () => {
  const [sender, receiver] = [center.address(laptop), center.address(tablet)];
  expect(sessions.map(({ seen }) => seen)).toEqual([sender, sender]);
  const input = `table inet seen {
    set begun { typeof ip saddr . meta l4proto; flags dynamic; }
    chain input {
      type filter hook input priority 0; iifname "cpn0" icmp type echo-request add @begun { ip saddr . meta l4proto }
      iifname "cpn0" meta l4proto udp add @begun { ip saddr . meta l4proto }
    }
  }`;
  await tablet.exec(['nft', '-f', '-'], { input });
  expect(await laptop.ping(receiver)).toMatchObject({ received: 1 });
  await laptop.exec(['bash', '-c', `echo one >/dev/udp/${receiver}/5353`]);
  const { stdout } = await eventually('the datagram arrives', async () => {
    const listed = await tablet.exec(['nft', 'list', 'set', 'inet', 'seen', 'begun']);
    return listed.stdout.includes('udp') && listed;
  });
  const elements = [...stdout.matchAll(/([\d.]+) \. (\w+)/g)].map(([, from, protocol]) => `${protocol} ${from}`);
  expect(elements.toSorted()).toEqual([`icmp ${sender}`, `udp ${sender}`]);
});

test('sessions survive the closing of the network, by a rule for them', async () => {
  const sessions = { name: 'sessions', from: ['peer:laptop'], to: ['peer:tablet'], protocol: 'tcp' };
  await center.owner.setRules(center.network, { mode: 'closed', rules: [sessions] });
  const dial = (from: Host, to: Host, port: number) =>
    from.exec(['timeout', '3', 'bash', '-c', `: </dev/tcp/${center.address(to)}/${port}`], { allowFailure: true });
  await serveEchoes(laptop);
  await eventually('the other direction is refused', async () => {
    const { stderr } = await dial(tablet, laptop, 8081);
    return stderr.includes('No route to host');
  });
  expect((await dial(laptop, tablet, 8081)).exitCode).toBe(0);
  await expectSessions();
});

test('sessions survive a change of the map', async () => {
  await center.addOrigin('origin', '203.0.113.22');
  await center.controlPlane.cpn([
    'network',
    'update',
    'office',
    '--yes',
    '--route',
    lanRoute,
    '--route',
    '192.168.60.0/24',
  ]);
});

test('sessions survive a restart and the death of each daemon', async () => {
  for (const host of [await findRelay(), laptop, tablet]) {
    await center.restartDaemon(host);
    center.daemon(host).process.signal('SIGKILL');
    await center.daemon(host).process.exited;
    center.daemons.set(host, await startDaemon(host));
    await center.daemon(host).awaitLog('the daemon runs', ({ msg }) => msg === 'reconciling the network');
    await expectSessions();
  }
});

test('sessions survive new keys of a host and of the relay', async () => {
  for (const host of [laptop, await findRelay()]) {
    await host.cpn(['rotate-key']);
    await expectSessions();
  }
});

test('sessions survive a relay that is drained and comes back into service', async () => {
  const relay = await findRelay();
  await relay.cpn(['drain', '--yes'], { timeoutMs: 90_000, allowFailure: true });
  await findRelay(relay);
  await expectSessions();
  await relay.cpn(['drain', '--undo']);
  await expectSessions();
});

test('sessions survive a relay whose host begins to drop what it forwards', async () => {
  const relay = await findRelay();
  await relay.exec(['iptables', '--policy', 'FORWARD', 'DROP']);
  await findRelay(relay);
  await expectSessions();
  await relay.exec(['iptables', '--policy', 'FORWARD', 'ACCEPT']);
  const [range] = (await center.listed(relay)).withdrawn ?? [];
  expect(range).toBe('10.77.0.0/24');
  await eventually('it may relay again', async () => !(await center.listed(relay)).withdrawn?.includes(range ?? ''));
});

test('sessions survive the death of the relay, its return, and the death of the next one, complete and in order', async () => {
  const dead = await findRelay();
  await dead.uplink.cut();
  const next = await findRelay(dead);
  await expectSessions();
  await dead.uplink.restore();
  for (const host of [laptop, tablet]) await awaitReturn(host, dead);
  await expectSessions();
  center.daemon(next).process.signal('SIGKILL');
  await next.exec(['sh', '-c', 'kill -9 $(pidof wireguard-go) 2>/dev/null || ip link delete cpn0']);
  await awaitRelay([laptop, tablet], [dead]);
  await expectSessions();
  expect(await Promise.all(sessions.map((session) => session.end()))).toEqual(['complete', 'complete']);
});
