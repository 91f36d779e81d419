import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Host } from '../lab/host.ts';
import { awaitRoute, DataCenter, lanRoute } from './data-center.ts';
import { NumberedSession, serveEchoes } from './numbered-session.ts';
import { awaitReturn } from './relays.ts';

/**
 * Two connectors that map the same LAN and do not masquerade. The LAN sends its packets for the network to the one in service. One
 * takes up no TCP connection in the middle (`nf_conntrack_tcp_loose`).
 */
let center: DataCenter;
let first: Host;
let second: Host;
let origin: Host;

/** The server in the network, and in its LAN. */
const [address, local] = ['192.168.50.10', '192.168.7.10'];

beforeAll(async () => {
  center = await DataCenter.start();
  await center.server.exec(['ip', 'address', 'flush', 'dev', 'eth0']);
  await center.server.exec(['ip', 'address', 'add', `${local}/24`, 'dev', 'eth0']);
  first = await addConnector(1);
  second = await addConnector(2);
  origin = await center.addOrigin('origin', '203.0.113.22');
  await center.awaitAnswers(origin, first, second);
  await second.exec(['sh', '-c', 'echo 0 >/proc/sys/net/netfilter/nf_conntrack_tcp_loose']);
  for (const host of [origin, center.server]) await serveEchoes(host);
}, 90_000);
afterAll(() => center?.stop());

async function addConnector(number: number): Promise<Host> {
  const host = await center.lab.addHost(`edge-${number}`, { address: `203.0.113.${30 + number}/24` });
  await host.plug(center.lan, { address: `192.168.7.${number}/24` });
  const mapped = ['--no-masquerade', '--map', `${lanRoute}=192.168.7.0/24`];
  return center.join(host, '--type', 'connector', '--endpoint', `${host.address}:51820`, ...mapped);
}

/** Has the LAN send its packets for the network to this connector. */
async function answerThrough(connector: Host): Promise<void> {
  const lan = connector === first ? '192.168.7.1' : '192.168.7.2';
  await center.server.exec(['ip', 'route', 'replace', '10.77.0.0/24', 'via', lan]);
}

test('sessions of either direction survive each connector of a mapped LAN, and the return to one that had them', async () => {
  await awaitRoute(origin, first);
  await answerThrough(first);
  const { server } = center;
  const sessions = [
    await NumberedSession.tcp(origin, address),
    await NumberedSession.ssh(origin, server, address),
    await NumberedSession.tcp(server, center.address(origin)),
    await NumberedSession.ssh(server, origin, center.address(origin)),
  ];
  const own = center.address(origin);
  expect(sessions.map(({ seen }) => seen)).toEqual([own, own, address, address]);

  for (const [dying, next] of [
    [first, second],
    [second, first],
    [first, second],
  ] as const) {
    await dying.uplink.cut();
    await awaitRoute(origin, next);
    await answerThrough(next);
    for (const session of sessions) await session.goesOn();
    await dying.uplink.restore();
    await awaitReturn(origin, dying);
  }
  expect(await Promise.all(sessions.map((session) => session.end()))).toEqual(sessions.map(() => 'complete'));
});
