import { appendFile, readFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { builtProgram } from '../lab/built-program.ts';
import { joinHost } from '../lab/control-plane.ts';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Owner } from '../lab/owner.ts';
import { join, type Office, patiently, plan, startOffice, status } from './office.ts';

/**
 * Within a few seconds: after 15 s a connector that receives nothing from its peer makes a handshake, and
 * WireGuard answers along the path of that packet, whatever the routes are.
 *
 * Control plane and connector are in 203.0.113.0/24, the hosts under test behind a router of it. A network route
 * over this range, accepted by mistake, cuts off both. The connector's endpoint is a name: the control plane
 * refuses a route that covers an endpoint, but does not resolve names.
 */
let office: Office;
let owner: Owner;
let connector: Host;
let members = 10;

/** Cuts off control plane and connector, or the control plane alone. */
const fatal = '203.0.113.0/24';
const controlPlane = '203.0.113.1/32';

beforeAll(async () => {
  office = await startOffice({ flags: ['--allow-public-routes'] });
  owner = new Owner(office.controlPlane);
  connector = await office.lab.addHost('connector', { address: '203.0.113.11/24' });
  const home = await office.lab.addNat('home', { outside: '203.0.113.33/24', inside: '10.0.0.1/24' });
  addMember = (name, address) => home.addHost(name, address);
  await join(office, connector, '--type', 'connector', '--endpoint', 'connector.example.net:51820');
}, 60_000);

afterAll(() => office?.lab.stop());

let addMember: (name: string, address: string) => Promise<Host>;

/** A host that could be cut off, and reaches the connector. */
async function startMember(): Promise<Host> {
  members += 1;
  const host = await addMember(`member-${members}`, `10.0.0.${members}/24`);
  await appendFile(path(host.etcDir, 'hosts'), `${connector.address} connector.example.net\n`);
  const flags = ['--type', 'admin_device', '--allow-route', fatal, '--allow-route', controlPlane];
  await joinHost(office.controlPlane, host, { network: 'office', flags, before: [connector] });
  expect(await host.ping('10.77.0.1', patiently)).toMatchObject({ received: 1 });
  return host;
}

const stateOf = async (host: Host) => JSON.parse(await readFile(path(host.stateDir, 'cpn0.json'), 'utf8'));

/** A change and its rollback may cost a session, and the packet that was sent in it. */
async function awaitConnector(host: Host): Promise<void> {
  await eventually('the connector answers', async () => (await host.ping('10.77.0.1')).received === 1);
}

// One that fails leaves no route that cuts the next one's host off.
afterEach(() => owner.setRoutes(1, ['192.168.50.0/24']));

describe('a change that cuts the host off', () => {
  it('is rolled back by cpn reconcile, reported, and not tried again until the network changes', async () => {
    const host = await startMember();
    const before = await host.state();
    await owner.setRoutes(1, ['192.168.50.0/24', fatal]);
    const { exitCode, stderr } = await host.cpn(['reconcile', '--confirm-within', '3s'], { allowFailure: true });
    expect(exitCode).toBe(1);
    expect(stderr).toContain('was rolled back');
    const network = (state: string) => state.split('# processes')[0];
    expect(network(await host.state())).toBe(network(before));
    await awaitConnector(host);
    expect((await status(host)).warnings).toEqual([expect.stringContaining('rolled back')]);

    expect((await host.cpn(['reconcile'])).stdout).toContain('is up to date');
    expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });

    await owner.setRoutes(1, ['192.168.50.0/24', '192.168.60.0/24']);
    await host.cpn(['reconcile']);
    expect(await status(host)).toMatchObject({
      routes: [{ prefix: '192.168.50.0/24' }, { prefix: '192.168.60.0/24', state: 'active' }],
    });
    expect((await status(host)).warnings).toBeUndefined();
  });

  it('is rolled back by the daemon', async () => {
    const host = await startMember();
    await using daemon = await startDaemon(host, '--interval', '3600', '--confirm-within', '3s');
    await eventually('the daemon waits at the control plane', async () => (await status(host)).sync.mode === 'push');
    await owner.setRoutes(1, ['192.168.50.0/24', fatal]);
    const line = await daemon.awaitLog('the rollback', (each) => each.kind === 'NotConfirmed', 0, 50_000);
    expect(line.error).toContain('was rolled back');
    await awaitConnector(host);
    await owner.setRoutes(1, ['192.168.50.0/24']);
    await eventually('the next change is applied', async () => (await stateOf(host)).refused === null, {
      timeoutMs: 60_000,
    });
    await daemon.stop();
  });

  it('is rolled back when the daemon is stopped before the confirmation, and tried again by the next daemon', async () => {
    const host = await startMember();
    await using daemon = await startDaemon(host, '--interval', '3600');
    await eventually('the daemon waits at the control plane', async () => (await status(host)).sync.mode === 'push');
    const before = (await host.state()).split('# processes')[0];
    await owner.setRoutes(1, ['192.168.50.0/24', fatal]);
    await eventually('the change is on the host', async () =>
      (await host.exec(['ip', 'route', 'show', 'table', 'all', fatal])).stdout.includes('cpn0'),
    );
    expect(await daemon.process.stop(20_000)).toMatchObject({ exitCode: 0, signal: null });
    expect((await host.state()).split('# processes')[0]).toBe(before);
    expect((await stateOf(host)).refused).toBeNull();
    await owner.setRoutes(1, ['192.168.50.0/24']);
  });

  it('is rolled back by cpn set after a signal, whatever signals follow, and when its terminal is gone', async () => {
    const host = await startMember();
    await host.cpn(['set', '--refuse-route', fatal]);
    await owner.setRoutes(1, ['192.168.50.0/24', fatal]);
    await host.cpn(['reconcile']);
    const before = (await host.state()).split('# processes')[0];
    const isCutOff = async () =>
      (await host.exec(['ip', 'route', 'show', 'table', 'all', fatal])).stdout.includes('cpn0');
    const set = ['set', '--allow-route', fatal, '--confirm-within', '5m'];

    const setting = await host.spawnCpn(set);
    await eventually('the change is on the host', isCutOff);
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) setting.signal(signal);
    const { exitCode, stderr } = await setting.exited;
    expect({ exitCode, stderr }).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(
        /SIG(INT|TERM|HUP) interrupted the change before it was confirmed; it was rolled back/,
      ),
    });
    expect((await host.state()).split('# processes')[0]).toBe(before);

    const terminal = host.spawn(['script', '-qec', `${await builtProgram()} ${set.join(' ')}`, '/dev/null']);
    await eventually('the change is on the host', isCutOff);
    terminal.signal('SIGKILL');
    await eventually('the host is what it was', async () => (await host.state()).split('# processes')[0] === before, {
      timeoutMs: 60_000,
    });
    await owner.setRoutes(1, ['192.168.50.0/24']);
  });

  it('does not outlive a power cut either', async () => {
    const host = await startMember();
    await using daemon = await startDaemon(host, '--interval', '3600');
    await eventually('the daemon waits at the control plane', async () => (await status(host)).sync.mode === 'push');
    await owner.setRoutes(1, ['192.168.50.0/24', fatal]);
    await eventually('the change is on the host', async () =>
      (await host.exec(['ip', 'route', 'show', 'table', 'all', fatal])).stdout.includes('cpn0'),
    );
    daemon.process.signal('SIGKILL');
    await daemon.process.exited;
    await host.cpn(['up']);
    expect((await host.exec(['ip', 'route', 'show', 'table', 'all', fatal])).stdout).toBe('');
    await awaitConnector(host);
    await owner.setRoutes(1, ['192.168.50.0/24']);
  });

  it('is kept when it takes away the control plane alone, and a peer that answered before still does', async () => {
    const host = await startMember();
    await connector.exec(['nft', '-f', '-'], { input: dropControlPlane });
    await owner.setRoutes(1, ['192.168.50.0/24', controlPlane]);
    await host.cpn(['reconcile', '--confirm-within', '10s']);
    expect((await host.exec(['ip', 'route', 'show', 'table', 'all', controlPlane])).stdout).toContain('cpn0');
    expect((await host.cpn(['reconcile'], { allowFailure: true })).exitCode).toBe(5);
    await awaitConnector(host);
  });
});

const dropControlPlane = `table ip cut { chain forward { type filter hook forward priority -10; ip daddr 203.0.113.1 drop; }; };\n`;
