import { afterAll, beforeAll, expect, test } from 'vitest';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { awaitRoute, DataCenter, lanRoute, routesOf, serverAddress } from './data-center.ts';
import { patiently, status } from './office.ts';

let center: DataCenter;
let first: Host;
let second: Host;
let origin: Host;

beforeAll(async () => {
  center = await DataCenter.start();
  ({ first, second, origin } = await center.addPair());
  await awaitRoute(origin, first);
}, 90_000);
afterAll(() => center?.stop());

/** The rules of docker without containers. */
const docker = `table ip filter {
  chain DOCKER-USER { }
  chain FORWARD { type filter hook forward priority 0; policy drop; jump DOCKER-USER; }
}`;
/** A connector's withdrawn routes at the control plane. */
const withdrawnBy = async (host: Host) => (await center.listed(host)).withdrawn ?? [];
const warnings = async (host: Host): Promise<readonly string[]> => (await status(host)).warnings ?? [];
const gone = `this host has no path to the LAN behind ${lanRoute} (eth1 is down, or has no carrier); `;
const cause = ({ msg }: { readonly msg: string }) => msg.startsWith('the path to the LAN behind a route');

test('a connector whose LAN interface goes down leaves the route to the other, and comes back on standby', {
  timeout: 120_000,
}, async () => {
  await first.exec(['ip', 'link', 'set', 'eth1', 'down']);
  await awaitRoute(origin, second);
  expect(await origin.ping(serverAddress, patiently)).toMatchObject({ received: 1 });
  expect(await withdrawnBy(first)).toEqual([lanRoute]);
  const inService = `${gone}the route is out of service here until there is one`;
  await eventually('it reports it', async () => (await warnings(first)).join().includes(inService));
  expect(await status(first)).toMatchObject({ state: 'degraded', routes: [{ state: 'standby' }] });
  const doctor = JSON.parse((await first.cpn(['doctor', '--json'], { allowFailure: true })).stdout);
  expect(doctor.findings).toContainEqual(
    expect.objectContaining({ verdict: 'problem', found: expect.stringContaining('eth1 is down') }),
  );
  // After a restart with an empty /run only the map is left.
  await center.daemon(first).stop();
  await first.exec(['rm', '-f', `${first.runtimeDir}/cpn0.notes.json`]);
  center.daemons.set(first, await startDaemon(first));
  await eventually('it waits at the control plane', async () => (await status(first)).sync.mode === 'push');
  expect(await withdrawnBy(first)).toEqual([lanRoute]);

  await first.exec(['ip', 'link', 'set', 'eth1', 'up']);
  await eventually('it is in service', async () => (await withdrawnBy(first)).length === 0);
  const standby = 'served by this host; standby: edge-2 is in service';
  await eventually('it stands by', async () => (await routesOf(first))[0]?.reason === standby);
  await eventually('the origin has it on standby', async () => (await routesOf(origin)).length === 2);
  expect(await routesOf(origin)).toMatchObject([{ via: 'edge-2', state: 'active' }, { via: 'edge-1' }]);
  expect(center.daemon(first).log.filter(cause)).toMatchObject([{ msg: 'the path to the LAN behind a route is back' }]);
});

test('where both lose it, hosts report where it is out of service, and it comes back by itself', {
  timeout: 120_000,
}, async () => {
  for (const host of [first, second]) await (host.links[1] as Host['uplink']).unplug();
  const reason = 'no connector; out of service at edge-1, edge-2';
  await eventually('the origin has the reason', async () => (await routesOf(origin))[0]?.reason === reason);
  expect(await routesOf(origin)).toMatchObject([{ via: null, state: 'missing' }]);
  await (second.links[1] as Host['uplink']).restore();
  await awaitRoute(origin, second);
  expect(await origin.ping(serverAddress, patiently)).toMatchObject({ received: 1 });
});

test('a connector whose packets docker drops leaves the route to the other, and takes it back while no other serves it', {
  timeout: 120_000,
}, async () => {
  await (first.links[1] as Host['uplink']).restore();
  await eventually('it is in service', async () => (await withdrawnBy(first)).length === 0);
  await second.exec(['nft', '-f', '-'], { input: docker });
  await awaitRoute(origin, first);
  expect(await origin.ping(serverAddress, patiently)).toMatchObject({ received: 1 });
  expect(await withdrawnBy(second)).toEqual([lanRoute]);
  const left = `this host has no path to the LAN behind ${lanRoute} (nft table ip filter drops what this host forwards there: `;
  expect((await warnings(second)).join()).toContain(left);
  await (first.links[1] as Host['uplink']).unplug();
  await eventually('it serves the route again', async () => (await withdrawnBy(second)).length === 0);
  await (first.links[1] as Host['uplink']).restore();
  await awaitRoute(origin, first);
  await eventually('it left it again', async () => (await withdrawnBy(second)).length === 1);
  await second.exec(['nft', 'delete', 'table', 'ip', 'filter']);
  await eventually('it is on standby', async () => (await withdrawnBy(second)).length === 0);
  expect(await routesOf(origin)).toMatchObject([{ via: 'edge-1', state: 'active' }, { via: 'edge-2' }]);
});
