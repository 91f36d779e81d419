import { rm } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import type { Link } from '../lab/segment.ts';
import { awaitRoute, DataCenter, lanRoute, serverAddress } from './data-center.ts';
import { patiently, status } from './office.ts';

/** Greets, also those who ask and are gone before they are answered. */
const listen = `const greet = (each) => each.on('error', () => {}).end('hello');
  require('net').createServer(greet).listen(8000, () => console.log('open'));`;
const read = `require('net').connect(8000, '${serverAddress}').pipe(process.stdout)`;

describe.each([
  ['a TCP connection', `${serverAddress}:8000`],
  ['a ping', serverAddress],
])('a connector that probes its LAN by %s', { timeout: 120_000 }, (_, target) => {
  let center: DataCenter;
  let first: Host;
  let second: Host;
  let origin: Host;
  let cable: Link;

  beforeAll(async () => {
    center = await DataCenter.start();
    await center.server.spawn(['node', '-e', listen]).waitForLine(/open/);
    first = await center.addConnector(1, '--probe', target);
    second = await center.addConnector(2, '--probe', target);
    origin = await center.addOrigin('origin', '203.0.113.22');
    await center.awaitAnswers(origin, first, second);
    await center.prefer(first);
    cable = first.links[1] as Link;
  });
  afterAll(() => center?.stop());

  /** What the first connector has out of service, by the control plane. */
  async function withdrawn(): Promise<readonly string[]> {
    const { stdout } = await center.controlPlane.cpn(['network', 'show', 'office', '--json']);
    const { peers } = JSON.parse(stdout) as { peers: { name: string; withdrawn?: string[] }[] };
    return peers.find(({ name }) => name === first.name)?.withdrawn ?? [];
  }

  /** Waits until the origin goes by this connector, and reaches the server by it. */
  async function goesBy(via: Host): Promise<void> {
    await awaitRoute(origin, via, 60_000);
    expect(await origin.ping(serverAddress, patiently)).toMatchObject({ received: 1 });
    expect((await origin.exec(['node', '-e', read])).stdout).toBe('hello');
  }

  const warning = `the LAN behind ${lanRoute} does not answer (target ${target}); `;
  const warned = async () => ((await status(first)).warnings ?? []).join('\n');

  test('leaves the route to the other while its LAN is dead, says why, and serves it again', async () => {
    await goesBy(first);
    expect(await withdrawn()).toEqual([]);
    expect(await status(first)).toMatchObject({ state: 'up', routes: [{ prefix: lanRoute, state: 'active' }] });

    await cable.cut();
    await goesBy(second);
    expect(await withdrawn()).toEqual([lanRoute]);
    await eventually('its own map says so', async () => (await warned()).includes('out of service here until it does'));
    expect(await warned()).toContain(warning);
    expect(await status(first)).toMatchObject({
      state: 'degraded',
      routes: [{ prefix: lanRoute, state: 'standby', reason: 'out of service at this host' }],
    });
    // It goes on as the peer that it is: only the route moved.
    expect(await origin.ping(center.address(first), patiently)).toMatchObject({ received: 1 });

    await cable.restore();
    await goesBy(first);
    expect(await withdrawn()).toEqual([]);
    await eventually('nothing is left to warn of', async () => (await warned()) === '');
    expect(await status(first)).toMatchObject({ state: 'up', routes: [{ prefix: lanRoute, state: 'active' }] });
  });

  test('that begins anew while the route is out of service serves it once the LAN is well, and no sooner', async () => {
    await cable.cut();
    await goesBy(second);
    await center.daemon(first).stop();
    // As after a reboot: all that it knows is the map.
    await rm(path(first.runtimeDir, 'cpn0.notes.json'));
    const daemon = await startDaemon(first);
    center.daemons.set(first, daemon);
    await daemon.awaitLog('the route', ({ msg }) => msg === 'out of service until the LAN was seen well');
    // By then its first pass is over, and with it the first word to the control plane.
    await eventually('it waits at the control plane', async () => (await status(first)).sync.mode === 'push');
    expect(await withdrawn()).toEqual([lanRoute]);
    await cable.restore();
    await goesBy(first);
    expect(daemon.log.filter(({ msg }) => msg === 'the LAN behind a route is well again')).toHaveLength(1);
  });

  test('that cannot tell the control plane says so, and tells it when it is back', async () => {
    await center.daemon(first).stop();
    const daemon = await startDaemon(first, '--interval', '2');
    center.daemons.set(first, daemon);
    await eventually('it waits at the control plane', async () => (await status(first)).sync.mode === 'push');
    const controlPlane = center.controlPlane.host.uplink;
    await controlPlane.cut();
    await cable.cut();
    const untold = 'the control plane could not be told what is out of service here';
    await daemon.awaitLog('its LAN', ({ msg }) => msg === 'the LAN behind a route does not answer');
    await daemon.awaitLog('that it could not tell', ({ msg }) => msg === untold);
    expect(await warned()).toContain(`${warning}the control plane still has the route in service here`);
    expect(await awaitRoute(origin, first)).toMatchObject([{ via: 'edge-1' }, { via: 'edge-2', state: 'standby' }]);
    await controlPlane.restore();
    await goesBy(second);
    expect(daemon.log.filter(({ msg }) => msg === untold)).toHaveLength(1);
    await cable.restore();
    await goesBy(first);
  });
});
