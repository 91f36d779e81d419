import { afterAll, beforeAll, expect, test } from 'vitest';
import { spreadHosts } from '../../src/core/routing/topology/spread.ts';
import { peer, prefix } from '../core/samples.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { awaitRoute, DataCenter, lanRoute, serverAddress } from './data-center.ts';
import { patiently } from './office.ts';

let center: DataCenter;
let connectors: readonly Host[];
let hosts: readonly Host[];
beforeAll(async () => {
  center = await DataCenter.start();
  const { first, second, origin } = await center.addPair();
  connectors = [first, second];
  // With these ids, at least one host is of each connector.
  const others = [23, 24, 25].map((number) => center.addOrigin(`origin-${number}`, `203.0.113.${number}`));
  hosts = [origin, ...(await Promise.all(others))];
  for (const host of hosts) await awaitRoute(host, first);
}, 120_000);
afterAll(() => center?.stop());

const idOf = (host: Host) => center.joined.get(host)?.peer.id ?? 0;

/** The connector that a host gets by its id. */
function shareOf(host: Host): Host {
  const peers = connectors.map((each) => peer(idOf(each), { type: 'connector', masquerades: true }));
  const [own] = spreadHosts({ map: { spread: true }, failed: [] }, prefix(lanRoute), idOf(host), peers);
  return connectors.find((each) => idOf(each) === own?.id) as Host;
}

test('each host uses the connector of its share, and every connector is in service', async () => {
  await center.controlPlane.cpn(['network', 'update', 'office', '--spread']);
  for (const host of hosts) await awaitRoute(host, shareOf(host));
  expect(new Set(hosts.map(shareOf)).size).toBe(2);
  for (const host of hosts) expect(await host.ping(serverAddress, patiently)).toMatchObject({ received: 1 });
  const check = ['status', '--check', '--serving', lanRoute];
  for (const each of connectors) {
    await eventually(
      `${each.name} is in service`,
      async () => (await each.cpn(check, { allowFailure: true })).exitCode === 0,
    );
  }
  const health = async () => {
    const { stdout } = await center.controlPlane.cpn(['api', 'GET', `/api/networks/${center.network}/health`]);
    return JSON.parse(stdout).data.routes.find(({ route }: { route: string }) => route === lanRoute).shares;
  };
  const counts = connectors.map((each) => ({
    connector: idOf(each),
    hosts: hosts.filter((host) => shareOf(host) === each).length,
  }));
  await expect.poll(health).toEqual(counts);
});

test('a LAN that may begin connections in a closed network reaches each host, by the one connector in service', async () => {
  const rule = { name: 'all', from: ['any'], to: ['any'] };
  await center.owner.setRules(center.network, { mode: 'closed', rules: [rule] });
  const [first] = connectors as [Host, Host];
  for (const host of hosts) await awaitRoute(host, first);
  await center.server.exec(['ip', 'route', 'add', '10.77.0.0/24', 'via', '192.168.50.1']);
  for (const host of hosts) {
    expect(await center.server.ping(center.address(host), patiently)).toMatchObject({ received: 1 });
  }
  await center.server.exec(['ip', 'route', 'del', '10.77.0.0/24']);
  await center.owner.setRules(center.network, { mode: 'open', rules: [] });
  for (const host of hosts) await awaitRoute(host, shareOf(host));
});

test('a connector that stops masquerading ends it, as does --no-spread', async () => {
  const [first, second] = connectors as [Host, Host];
  await second.cpn(['set', '--no-masquerade']);
  for (const host of hosts) await awaitRoute(host, first);
  await second.cpn(['set', '--masquerade']);
  for (const host of hosts) await awaitRoute(host, shareOf(host));
  await center.controlPlane.cpn(['network', 'update', 'office', '--no-spread']);
  for (const host of hosts) await awaitRoute(host, first);
});
