import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { awaitRoute, DataCenter, serverAddress } from './data-center.ts';
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

test('they do so in a closed network, where the standby answers what the LAN begins through it', async () => {
  const rule = { name: 'all', from: ['any'], to: ['any'] };
  await center.owner.setRules(center.network, { mode: 'closed', rules: [rule] });
  const at = center.address(origin);
  const dial = async (through: string) => {
    await center.server.exec(['ip', 'route', 'replace', '10.77.0.0/24', 'via', through]);
    const script = `exec 2>&1; timeout 5 bash -c ': </dev/tcp/${at}/8081' && echo open || ping -c 1 -W 3 ${at}`;
    return (await center.server.exec(['bash', '-c', script], { allowFailure: true })).stdout;
  };
  await awaitRoute(origin, first);
  await eventually('the standby refuses', async () =>
    /No route to host[\s\S]*From \S+ .*Unreachable/.test(await dial('192.168.50.2')),
  );
  expect(await dial('192.168.50.1')).toContain('open');
  await expectLanSessions({
    ...{ center, origin, address: serverAddress, deaths: 1 },
    connectors: [
      [first, '192.168.50.1'],
      [second, '192.168.50.2'],
    ],
  });
  await awaitRoute(origin, second);
  await eventually('the other one refuses', async () => (await dial('192.168.50.1')).includes('No route to host'));
  expect(await dial('192.168.50.2')).toContain('open');
}, 120_000);
