import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Host } from '../lab/host.ts';
import { awaitRoute, DataCenter, serverAddress } from './data-center.ts';
import { NumberedSession, serveEchoes } from './numbered-session.ts';
import { awaitReturn } from './relays.ts';

/**
 * Two connectors that do not masquerade. The LAN sends its packets for the network to the one in service, as a router pair does. One
 * takes up no TCP connection in the middle (`nf_conntrack_tcp_loose`).
 */
let center: DataCenter;
let first: Host;
let second: Host;
let origin: Host;

beforeAll(async () => {
  center = await DataCenter.start();
  ({ first, second, origin } = await center.addPair('--no-masquerade'));
  await second.exec(['sh', '-c', 'echo 0 >/proc/sys/net/netfilter/nf_conntrack_tcp_loose']);
  for (const host of [origin, center.server]) await serveEchoes(host);
}, 90_000);
afterAll(() => center?.stop());

/** Has the LAN send its packets for the network to this connector. */
async function answerThrough(connector: Host): Promise<void> {
  const lan = connector === first ? '192.168.50.1' : '192.168.50.2';
  await center.server.exec(['ip', 'route', 'replace', '10.77.0.0/24', 'via', lan]);
}

test('sessions of either direction keep their addresses, and survive each connector of the LAN', async () => {
  await awaitRoute(origin, first);
  await answerThrough(first);
  const { server } = center;
  const sessions = [
    await NumberedSession.tcp(origin, serverAddress),
    await NumberedSession.ssh(origin, server, serverAddress),
    await NumberedSession.tcp(server, center.address(origin)),
    await NumberedSession.ssh(server, origin, center.address(origin)),
  ];
  const own = center.address(origin);
  expect(sessions.map(({ seen }) => seen)).toEqual([own, own, serverAddress, serverAddress]);

  for (const [dying, next] of [
    [first, second],
    [second, first],
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
