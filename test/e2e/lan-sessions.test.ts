import { afterAll, beforeAll, test } from 'vitest';
import type { Host } from '../lab/host.ts';
import { DataCenter, serverAddress } from './data-center.ts';
import { expectLanSessions } from './lan-sessions.ts';
import { serveEchoes } from './numbered-session.ts';

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

test('sessions of either direction keep their addresses, and survive each connector of the LAN', () =>
  expectLanSessions({
    ...{ center, origin, address: serverAddress, deaths: 2 },
    connectors: [
      [first, '192.168.50.1'],
      [second, '192.168.50.2'],
    ],
  }));
