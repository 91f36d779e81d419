import { rm } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import type { Link } from '../lab/segment.ts';
import { awaitRoute, DataCenter, lanRoute, routesOf, serverAddress } from './data-center.ts';
import { patiently, status } from './office.ts';

/** Greets each client, also one that is gone before the answer. */
const listen = `const greet = (each) => each.on('error', () => {}).end('hello');
  require('net').createServer(greet).listen(8000, () => console.log('open'));`;
const read = `require('net').connect(8000, '${serverAddress}').pipe(process.stdout)`;

const [byTcp, byPing] = [`${serverAddress}:8000`, serverAddress];

/** A data center whose server listens, and an origin that uses the first of its two connectors. */
interface Site {
  readonly center: DataCenter;
  readonly first: Host;
  readonly second: Host;
  readonly origin: Host;
  /** Of the first connector, to the LAN. */
  readonly cable: Link;
}

/** Each test begins where the one before ended. */
const inOrder = { concurrent: false, timeout: 120_000 };

/** Tests in a site of their own, next to others: they mostly wait for probes, and for what settles. */
function describeSite(name: string, define: (site: () => Site) => void): void {
  describe.concurrent(name, () => {
    let center: DataCenter | undefined;
    let site: Site;
    beforeAll(async () => {
      center = await DataCenter.start();
      await center.server.spawn(['node', '-e', listen]).waitForLine(/open/);
      const pair = await center.addPair();
      await awaitRoute(pair.origin, pair.first);
      site = { center, ...pair, cable: pair.first.links[1] as Link };
    }, 90_000);
    afterAll(() => center?.stop());
    define(() => site);
  });
}

/** A connector's withdrawn routes at the control plane. */
const withdrawnBy = async ({ center }: Site, host: Host) => (await center.listed(host)).withdrawn ?? [];

/** Waits until the origin uses this connector, and reaches the server through it. */
async function goesBy({ origin }: Site, via: Host): Promise<void> {
  await awaitRoute(origin, via, 60_000);
  expect(await origin.ping(serverAddress, patiently)).toMatchObject({ received: 1 });
  expect((await origin.exec(['node', '-e', read])).stdout).toBe('hello');
}

const warning = (target: string) => `the LAN behind ${lanRoute} does not answer (target ${target}); `;
const warned = async ({ first }: Site) => ((await status(first)).warnings ?? []).join('\n');

/** The rules of docker without containers. */
const docker = `table ip filter {
  chain DOCKER-USER { }
  chain FORWARD { type filter hook forward priority 0; policy drop; jump DOCKER-USER; }
}`;
const warnings = async (host: Host): Promise<readonly string[]> => (await status(host)).warnings ?? [];
const gone = `this host has no path to the LAN behind ${lanRoute} (eth1 is down, or has no carrier); `;
const cause = ({ msg }: { readonly msg: string }) => msg.startsWith('the path to the LAN behind a route');

/** The first connector leaves the route while its LAN is dead. */
async function expectMoves(site: Site, target: string): Promise<void> {
  const { center, first, second, origin, cable } = site;
  await goesBy(site, first);
  expect(await withdrawnBy(site, first)).toEqual([]);
  expect(await status(first)).toMatchObject({ state: 'up', routes: [{ prefix: lanRoute, state: 'active' }] });

  await cable.cut();
  await goesBy(site, second);
  expect(await withdrawnBy(site, first)).toEqual([lanRoute]);
  await eventually('its status reports it', async () =>
    (await warned(site)).includes('out of service here until it does'),
  );
  expect(await warned(site)).toContain(warning(target));
  expect(await status(first)).toMatchObject({
    state: 'degraded',
    routes: [{ prefix: lanRoute, state: 'standby', reason: 'out of service at this host' }],
  });
  // It remains a peer: only the route moved.
  expect(await origin.ping(center.address(first), patiently)).toMatchObject({ received: 1 });

  await cable.restore();
  await goesBy(site, first);
  expect(await withdrawnBy(site, first)).toEqual([]);
  await eventually('no warning is left', async () => (await warned(site)) === '');
  expect(await status(first)).toMatchObject({ state: 'up', routes: [{ prefix: lanRoute, state: 'active' }] });
}

describeSite('a connector without a path to its LAN', (here) => {
  test(
    'a connector whose LAN interface goes down leaves the route to the other, and comes back on standby',
    inOrder,
    async () => {
      const site = here();
      const { center, first, second, origin } = site;
      await first.exec(['ip', 'link', 'set', 'eth1', 'down']);
      await awaitRoute(origin, second);
      expect(await origin.ping(serverAddress, patiently)).toMatchObject({ received: 1 });
      expect(await withdrawnBy(site, first)).toEqual([lanRoute]);
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
      expect(await withdrawnBy(site, first)).toEqual([lanRoute]);

      await first.exec(['ip', 'link', 'set', 'eth1', 'up']);
      await eventually('it is in service', async () => (await withdrawnBy(site, first)).length === 0);
      const standby = 'served by this host; standby: edge-2 is in service';
      await eventually('it stands by', async () => (await routesOf(first))[0]?.reason === standby);
      await eventually('the origin has it on standby', async () => (await routesOf(origin)).length === 2);
      expect(await routesOf(origin)).toMatchObject([{ via: 'edge-2', state: 'active' }, { via: 'edge-1' }]);
      expect(center.daemon(first).log.filter(cause)).toMatchObject([
        { msg: 'the path to the LAN behind a route is back' },
      ]);
    },
  );

  test(
    'where both lose it, hosts report where it is out of service, and it comes back by itself',
    inOrder,
    async () => {
      const { first, second, origin } = here();
      for (const host of [first, second]) await (host.links[1] as Host['uplink']).unplug();
      const reason = 'no connector; out of service at edge-1, edge-2';
      await eventually('the origin has the reason', async () => (await routesOf(origin))[0]?.reason === reason);
      expect(await routesOf(origin)).toMatchObject([{ via: null, state: 'missing' }]);
      await (second.links[1] as Host['uplink']).restore();
      await awaitRoute(origin, second);
      expect(await origin.ping(serverAddress, patiently)).toMatchObject({ received: 1 });
    },
  );

  test(
    'a connector whose packets docker drops leaves the route to the other, and takes it back while no other serves it',
    inOrder,
    async () => {
      const site = here();
      const { first, second, origin } = site;
      await (first.links[1] as Host['uplink']).restore();
      await eventually('it is in service', async () => (await withdrawnBy(site, first)).length === 0);
      await second.exec(['nft', '-f', '-'], { input: docker });
      await awaitRoute(origin, first);
      expect(await origin.ping(serverAddress, patiently)).toMatchObject({ received: 1 });
      expect(await withdrawnBy(site, second)).toEqual([lanRoute]);
      const left = `this host has no path to the LAN behind ${lanRoute} (nft table ip filter drops what this host forwards there: `;
      await eventually('it reports it', async () => (await warnings(second)).join().includes(left));
      await (first.links[1] as Host['uplink']).unplug();
      await eventually('it serves the route again', async () => (await withdrawnBy(site, second)).length === 0);
      await (first.links[1] as Host['uplink']).restore();
      await awaitRoute(origin, first);
      await eventually('it left it again', async () => (await withdrawnBy(site, second)).length === 1);
      await second.exec(['nft', 'delete', 'table', 'ip', 'filter']);
      await eventually('it is on standby', async () => (await withdrawnBy(site, second)).length === 0);
      await eventually('the origin has it on standby', async () => (await routesOf(origin)).length === 2);
      expect(await routesOf(origin)).toMatchObject([{ via: 'edge-1', state: 'active' }, { via: 'edge-2' }]);
    },
  );
});

describeSite('a connector that probes its LAN', (here) => {
  describe('by a TCP connection', { concurrent: false }, () => {
    beforeAll(async () => {
      const { center, first, second } = here();
      for (const host of [first, second]) await host.cpn(['set', '--probe', byTcp]);
      await center.prefer(first);
    });

    test('leaves the route to the other while its LAN is dead, reports why, and serves it again', inOrder, () =>
      expectMoves(here(), byTcp),
    );

    test(
      'that restarts while the route is out of service serves it once the LAN answers, and no sooner',
      inOrder,
      async () => {
        const site = here();
        const { center, first, second, cable } = site;
        await cable.cut();
        await goesBy(site, second);
        await center.daemon(first).stop();
        // As after a reboot: only the map is left.
        await rm(path(first.runtimeDir, 'cpn0.notes.json'));
        const daemon = await startDaemon(first);
        center.daemons.set(first, daemon);
        await daemon.awaitLog('the route', ({ msg }) => msg === 'out of service until the LAN answers');
        // By then its first pass is over, and with it the first report to the control plane.
        await eventually('it waits at the control plane', async () => (await status(first)).sync.mode === 'push');
        expect(await withdrawnBy(site, first)).toEqual([lanRoute]);
        await cable.restore();
        await goesBy(site, first);
        expect(daemon.log.filter(({ msg }) => msg === 'the LAN behind a route answers again')).toHaveLength(1);
      },
    );

    test('that cannot report to the control plane logs that, and reports when it is back', inOrder, async () => {
      const site = here();
      const { center, first, second, origin, cable } = site;
      await center.daemon(first).stop();
      const daemon = await startDaemon(first, '--interval', '2');
      center.daemons.set(first, daemon);
      await eventually('it waits at the control plane', async () => (await status(first)).sync.mode === 'push');
      const controlPlane = center.controlPlane.host.uplink;
      await controlPlane.cut();
      await cable.cut();
      const notReported = 'routes out of service could not be reported';
      await daemon.awaitLog('its LAN', ({ msg }) => msg === 'the LAN behind a route does not answer');
      await daemon.awaitLog('the failed report', ({ msg }) => msg === notReported);
      expect(await warned(site)).toContain(`${warning(byTcp)}the control plane still has the route in service here`);
      expect(await awaitRoute(origin, first)).toMatchObject([{ via: 'edge-1' }, { via: 'edge-2', state: 'standby' }]);
      await controlPlane.restore();
      await goesBy(site, second);
      expect(daemon.log.filter(({ msg }) => msg === notReported)).toHaveLength(1);
      await cable.restore();
      await goesBy(site, first);
    });
  });

  describe('by a ping', { concurrent: false }, () => {
    test('leaves the route to the other while its LAN is dead, reports why, and serves it again', inOrder, async () => {
      const { first, second } = here();
      for (const host of [first, second]) await host.cpn(['set', '--drop-probe', byTcp, '--probe', byPing]);
      await expectMoves(here(), byPing);
    });
  });
});
