import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { FaultyProxy } from '../faults/faulty-proxy.ts';
import { LossMeter } from '../faults/loss-meter.ts';
import { joinHost } from '../lab/control-plane.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { awaitRoute, DataCenter, lanRoute, routesOf, serverAddress } from './data-center.ts';
import { patiently, status } from './office.ts';

const range = '10.77.0.0/24';

describe('a connector that is drained', { timeout: 150_000 }, () => {
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

  // A failed test leaves a connector drained or down, and each test after it would wait for a route in vain.
  afterEach(async ({ task }) => {
    if (task.result?.state !== 'fail') return;
    for (const connector of [first, second]) {
      for (const command of [['up'], ['drain', '--undo']]) await connector.cpn(command, { allowFailure: true });
    }
    await awaitRoute(origin, first);
  });

  /** The first connector at the control plane. */
  const service = () => center.listed(first);

  async function drain(...flags: string[]) {
    const { stdout, stderr, exitCode } = await first.cpn(['drain', '--json', ...flags], {
      allowFailure: true,
      timeoutMs: 90_000,
    });
    return { exitCode, stderr, networks: stdout === '' ? null : JSON.parse(stdout).networks };
  }

  test('hands its routes to the other, gets them back, and no flow loses a packet in either direction', async () => {
    await using flow = await LossMeter.start(origin, serverAddress);
    expect(await drain()).toMatchObject({
      exitCode: 0,
      networks: [{ interface: 'cpn0', withdrawn: [range, lanRoute], idle: true, state: 'up' }],
    });
    expect(await service()).toMatchObject({ routes: [], withdrawn: [range, lanRoute] });
    expect(await routesOf(origin)).toEqual([{ prefix: lanRoute, via: 'edge-2', state: 'active' }]);
    expect(await status(first)).toMatchObject({
      state: 'up',
      routes: [{ prefix: lanRoute, state: 'standby', reason: 'out of service at this host' }],
      warnings: [expect.stringContaining('out of service since "cpn drain"')],
    });

    expect(await drain('--undo')).toMatchObject({
      exitCode: 0,
      networks: [{ interface: 'cpn0', withdrawn: [], state: 'up' }],
    });
    // It has its place back, before one that serves since later.
    await awaitRoute(origin, first);
    const shown = await service();
    expect([shown.routes, shown.withdrawn]).toEqual([undefined, undefined]);
    expect(await status(first)).not.toHaveProperty('warnings');
    const { sent, lost } = await flow.stop();
    expect(sent).toBeGreaterThan(30);
    expect(lost).toBe(0);
  });

  test('lists the peers that still send when its time is over', async () => {
    const stubborn = await center.addOrigin('stubborn', '203.0.113.24');
    await awaitRoute(stubborn, first);
    // Its daemon is stopped, so that it does not move the route.
    await center.daemon(stubborn).stop();
    await using flow = await LossMeter.start(stubborn, serverAddress);
    const { exitCode, stderr, networks } = await drain('--timeout', '5');
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/not idle after 5 s: cpn0 still receives \d+\.\d kB\/s, from stubborn/);
    expect(networks).toMatchObject([{ idle: false, state: 'up' }]);
    expect((await flow.stop()).lost).toBe(0);
    await drain('--undo');
  });

  test('is withdrawn again by its daemon when the control plane forgets it', async () => {
    await drain();
    const { id } = center.joined.get(first)?.peer ?? { id: 0 };
    await center.owner.withdraw(center.network, id, []);
    await eventually('it is withdrawn again', async () => (await service()).withdrawn?.length === 2);
    await drain('--undo');
    await awaitRoute(origin, first);
  });

  test('goes down with --down, and comes back into service with `cpn up`', async () => {
    expect(await drain('--down')).toMatchObject({ exitCode: 0, networks: [{ idle: true, state: 'down' }] });
    expect(await status(first)).toMatchObject({ state: 'down' });
    await awaitRoute(origin, second);
    expect(await origin.ping(serverAddress, patiently)).toMatchObject({ received: 1 });
    expect(await drain('--undo')).toMatchObject({ exitCode: 2 });
    await first.cpn(['up']);
    await eventually('it is in service', async () => (await service()).withdrawn === undefined);
    // Once it is trusted again, after 60 s.
    await eventually('it serves its route', async () => (await routesOf(first))[0]?.state === 'active', {
      timeoutMs: 100_000,
    });
  });

  test('names what no other connector serves, and prompts', async () => {
    await second.cpn(['drain']);
    await first.cpn(['reconcile']);
    const refused = await drain();
    expect([refused.exitCode, refused.networks]).toEqual([2, null]);
    expect(refused.stderr).toContain(`cpn0: no other connector of office serves ${lanRoute}`);
    expect((await service()).withdrawn).toBeUndefined();
    expect(await drain('--yes')).toMatchObject({ exitCode: 0, networks: [{ withdrawn: [range, lanRoute] }] });
    await drain('--undo');
    await second.cpn(['drain', '--undo']);
  });

  test('must be a connector', async () => {
    const { exitCode, stderr } = await origin.cpn(['drain'], { allowFailure: true });
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('only a connector serves routes')]);
  });

  test('stays in service where the control plane has no operation to withdraw it', async () => {
    const proxy = await FaultyProxy.start(center.lab, center.controlPlane);
    const host = await center.lab.addHost('edge-3', { address: '203.0.113.33/24' });
    const flags = ['--type', 'connector', '--endpoint', '203.0.113.33:51820', '--wait', '0'];
    await joinHost({ ...center.controlPlane, url: proxy.url }, host, { network: 'office', flags });
    await proxy.inject({ kind: 'answer', status: 404, body: '{"message":"there is no such route"}' });
    const { exitCode, stderr } = await host.cpn(['drain', '--down'], { allowFailure: true });
    expect([exitCode, stderr]).toEqual([
      4,
      expect.stringMatching(/this service cannot withdraw routes.*\ncpn0 is unchanged/s),
    ]);
    const served = expect.stringMatching(/^served by this host/);
    expect(await status(host)).toMatchObject({ state: 'up', routes: [{ reason: served }] });
    expect(await status(host)).not.toHaveProperty('warnings');
  });
});
