import { afterAll, beforeAll, expect, test } from 'vitest';
import { manifest } from '../../packaging/source.ts';
import type { Health, PeerHealth } from '../../src/contract/health.ts';
import { joinHost } from '../lab/control-plane.ts';
import { startDaemon } from '../lab/daemon.ts';
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
/** A host of another network, whose only connector has an endpoint at which nothing answers. */
let branch: Branch;

beforeAll(async () => {
  center = await DataCenter.start();
  first = await center.addConnector(1);
  second = await center.addConnector(2);
  laptop = await center.addLaptop('laptop', '203.0.113.40');
  home = center.lab.hosts.get('laptop-home') as Host;
  branch = await startBranch();
  await center.awaitAnswers(laptop, first, second);
}, 120_000);
afterAll(() => center?.stop());

interface Branch {
  readonly network: number;
  readonly host: Host;
}

const branchRoute = '192.168.60.0/24';

async function startBranch(): Promise<Branch> {
  const { lab, controlPlane, owner } = center;
  const network = await owner.createNetwork('branch', '10.78.0.0/24', [branchRoute]);
  const start = async (name: string, address: string, ...flags: string[]) => {
    const host = await lab.addHost(name, { address });
    await joinHost(controlPlane, host, { network: 'branch', flags: ['--wait', '0', ...flags] });
    await startDaemon(host);
    return host;
  };
  await start('branch-edge', '203.0.113.51/24', '--type', 'connector', '--endpoint', '203.0.113.99:51899');
  return { network, host: await start('branch-web', '203.0.113.52/24') };
}

async function readHealth(network = center.network): Promise<Health> {
  const { stdout } = await center.controlPlane.cpn(['api', 'GET', `/api/networks/${network}/health`]);
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
    { timeoutMs: 90_000 },
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

test('a connector that never answered is a problem everywhere after a minute', { timeout: 120_000 }, async () => {
  const { host, network } = branch;
  const seen = await eventually(
    'the network is degraded',
    async () => {
      const found = await status(host);
      return found.state === 'degraded' ? found : null;
    },
    { timeoutMs: 100_000, everyMs: 1_000 },
  );
  expect(seen).toMatchObject({
    peers: [{ name: 'branch-edge', state: 'never' }],
    routes: [{ prefix: branchRoute, via: 'branch-edge', state: 'active', reason: 'does not answer' }],
  });
  const check = await host.cpn(['status', '--check'], { allowFailure: true });
  expect([check.exitCode, check.stderr + check.stdout]).toEqual([3, expect.stringContaining('branch-edge')]);
  const doctor = await host.cpn(['doctor'], { allowFailure: true });
  expect([doctor.exitCode, doctor.stdout]).toEqual([3, expect.stringContaining('branch-edge does not answer')]);
  const { routes } = await readHealth(network);
  expect(routes).toMatchObject([{ route: branchRoute, state: 'unknown', connector: null }]);
});
