import { afterAll, beforeAll, test } from 'vitest';
import type { Host } from '../lab/host.ts';
import { DataCenter, lanRoute } from './data-center.ts';
import { expectLanSessions } from './lan-sessions.ts';
import { serveEchoes } from './numbered-session.ts';

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

test('sessions of either direction survive each connector of a mapped LAN, and the return to one that had them', () =>
  expectLanSessions({
    ...{ center, origin, address, deaths: 2 },
    connectors: [
      [first, '192.168.7.1'],
      [second, '192.168.7.2'],
    ],
  }));
