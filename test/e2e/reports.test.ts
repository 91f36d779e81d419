import { afterAll, beforeAll, expect, test } from 'vitest';
import { manifest } from '../../packaging/source.ts';
import type { Health, PeerHealth } from '../../src/contract/health.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { cutPath, DataCenter, lanRoute, restorePath } from './data-center.ts';
import { status } from './office.ts';

let center: DataCenter;
let first: Host;
let second: Host;
let laptop: Host;
/** The router that the laptop is behind. */
let home: Host;

beforeAll(async () => {
  center = await DataCenter.start();
  first = await center.addConnector(1);
  second = await center.addConnector(2);
  laptop = await center.addLaptop('laptop', '203.0.113.40');
  home = center.lab.hosts.get('laptop-home') as Host;
  await center.awaitAnswers(laptop, first, second);
}, 120_000);
afterAll(() => center?.stop());

async function readHealth(): Promise<Health> {
  const { stdout } = await center.controlPlane.cpn(['api', 'GET', `/api/networks/${center.network}/health`]);
  return JSON.parse(stdout).data;
}

const idOf = (host: Host): number => center.joined.get(host)?.peer.id ?? 0;

/** Waits until a host has this path to another one in its entry. */
async function awaitPath(from: Host, to: Host, expected: object): Promise<PeerHealth> {
  return eventually(
    `${from.name} reports ${JSON.stringify(expected)} to ${to.name}`,
    async () => {
      const row = (await readHealth()).peers.find(({ id }) => id === idOf(from));
      const found = row?.paths.find(({ peer }) => peer === idOf(to));
      expect(found).toMatchObject(expected);
      return row ?? null;
    },
    { timeoutMs: 90_000, everyMs: 500 },
  );
}

test('the entry of a host shows how it reaches the others, as the links change', { timeout: 300_000 }, async () => {
  await awaitPath(laptop, first, { path: 'direct' });
  const row = await awaitPath(laptop, second, { path: 'direct' });
  expect(row).toMatchObject({ state: 'online', drift: 0, pin_mismatches: [], problem: null });
  expect(row.routes).toEqual([{ route: lanRoute, connector: idOf(first) }]);
  await awaitPath(first, laptop, { path: 'direct' });
  await eventually(
    'every host sees how it is reached',
    async () => {
      const { health } = await status(laptop);
      expect(health).toEqual({ reachable_by: 2, witnesses: 2 });
      return true;
    },
    { timeoutMs: 120_000 },
  );
  expect((await laptop.cpn(['status'])).stdout).toContain('reachable by 2 of 2 hosts');
  const { stdout: peers } = await center.controlPlane.cpn(['peer', 'list', String(center.network)]);
  expect(peers).toMatch(new RegExp(`laptop +admin_device +online +[^ ].* ago +direct.* ${manifest.version} `));

  await cutPath(home, first.address);
  const moved = await awaitPath(laptop, first, { path: 'down' });
  expect(moved.routes).toEqual([{ route: lanRoute, connector: idOf(second) }]);
  // Packets to the laptop give the connector a reason to notice.
  const missing = first.spawn(['ping', '-n', '-i', '1', '-c', '120', center.address(laptop)]);
  await awaitPath(first, laptop, { path: 'relayed', via: idOf(second) });
  await missing.stop();

  await restorePath(home);
  // A transition has its figures with it; those of a path that stays may take a minute.
  await awaitPath(laptop, first, { path: 'direct', rtt_ms: expect.any(Number) });
  await awaitPath(first, laptop, { path: 'direct' });
});
