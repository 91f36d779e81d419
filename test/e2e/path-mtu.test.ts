import { afterAll, beforeAll, expect, it } from 'vitest';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { join, type Office, patiently, plan, startOffice, status } from './office.ts';
import { call, listen } from './tcp.ts';

let office: Office;
let hub: Host;
let hubAddress: string;
let router: Host;
let laptop: Host;

beforeAll(async () => {
  office = await startOffice();
  hub = await office.lab.addHost('hub', { address: '203.0.113.11/24' });
  const home = await office.lab.addNat('router', { outside: '203.0.113.20/24', inside: '192.168.1.1/24' });
  router = home.router;
  laptop = await home.addHost('laptop', '192.168.1.7/24');
  hubAddress = (await join(office, hub, '--type', 'connector', '--endpoint', '203.0.113.11:51820')).address;
  await join(office, laptop, '--type', 'admin_device');
  await hub.cpn(['reconcile']);
  await listen(hub);
  await laptop.ping(hubAddress, patiently);
}, 60_000);

afterAll(() => office?.lab.stop());

/** A path of 1320 bytes, on which fragments and "packet too big" messages are lost. */
const narrow = `table inet narrow {
  chain forward { type filter hook forward priority 0; meta l4proto udp meta length > 1320 drop; }
}`;

it('finds what a path carries, and large transfers pass; it goes back when the path is whole again', async () => {
  await router.exec(['nft', '-f', '-'], { input: narrow });
  const echo = (bytes: number) => [
    'ping',
    '-n',
    '-c',
    '1',
    '-W',
    '1',
    '-M',
    'do',
    '-s',
    String(bytes - 28),
    hubAddress,
  ];
  expect((await laptop.exec(echo(1420), { allowFailure: true })).exitCode).toBe(1);
  expect((await laptop.ping(hubAddress, patiently)).received).toBe(1);

  const daemon = await startDaemon(laptop);
  const { mtu } = await daemon.awaitLog(
    'the MTU',
    ({ msg }) => msg === 'large packets to a peer are lost; lowering the MTU',
  );
  // 60 bytes go around a packet, which is padded to a multiple of 16.
  expect(mtu).toBeGreaterThan(1239);
  expect(mtu).toBeLessThanOrEqual(1248);
  await eventually('the MTU is lowered', async () => (await status(laptop)).path_mtu !== undefined);
  expect(await status(laptop)).toMatchObject({ state: 'up', mtu, path_mtu: { peer: 'hub' }, drift: [] });
  expect(await plan(laptop)).toEqual({ exitCode: 0, changes: [] });
  await call(laptop, hubAddress, 300_000);
  expect((await laptop.cpn(['explain', hubAddress])).stdout).toContain(`up to ${mtu} bytes, measured to hub on `);

  await daemon.stop();
  expect(await plan(laptop)).toEqual({ exitCode: 0, changes: [] });
  await router.exec(['nft', 'delete', 'table', 'inet', 'narrow']);
  const again = await startDaemon(laptop);
  await eventually('the MTU is raised', async () => (await status(laptop)).path_mtu === undefined);
  expect(await status(laptop)).toMatchObject({ state: 'up', mtu: 1420, drift: [] });
  expect(await plan(laptop)).toEqual({ exitCode: 0, changes: [] });
  await laptop.exec(echo(1420));
  await again.stop();
  expect((await laptop.exec(['ip', 'route', 'show', 'table', 'all'])).stdout).not.toContain(' tos ');
}, 90_000);
