import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Host } from '../lab/host.ts';
import { join, type Office, startOffice } from './office.ts';

let office: Office;
let connector: Host;
let origin: Host;

beforeAll(async () => {
  office = await startOffice();
  connector = await office.lab.addHost('connector', { address: '203.0.113.11/24' });
  origin = await office.lab.addHost('origin', { address: '203.0.113.22/24' });
  await join(office, connector, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
}, 60_000);

afterAll(() => office?.lab.stop());

/** One check, without waiting: the exit code, and what is reported missing. */
async function check(host: Host, ...args: string[]) {
  const { exitCode, stdout, stderr } = await host.cpn(['wait', ...args, '--timeout', '0', '--json'], {
    allowFailure: true,
  });
  return { exitCode, stderr, networks: JSON.parse(stdout).networks };
}

const lan = '192.168.50.0/24';
const ready = { exitCode: 0, stderr: '', networks: [{ interface: 'cpn0', ready: true }] };

describe('cpn wait', () => {
  it('reports at once that no network is joined', async () => {
    const { exitCode, stdout, stderr } = await origin.cpn(['wait', '--json'], { allowFailure: true });
    expect([exitCode, stdout]).toEqual([2, '']);
    expect(stderr).toBe('cpn: no network is joined; join one with "cpn join"\n');
    expect(JSON.parse((await origin.cpn(['down', '--json'])).stdout)).toEqual({ networks: [] });
  });

  it('waits until a program can bind to the address', async () => {
    const { address } = await join(office, origin, '--endpoint', '203.0.113.22:51820');
    await origin.cpn(['down']);
    const waiting = await origin.spawnCpn(['wait', '--timeout', '50']);
    await waiting.waitForLine(/waiting: cpn0 was taken down/);
    await origin.cpn(['up']);
    expect(await waiting.exited).toMatchObject({ exitCode: 0, stdout: '' });
    const bind = `require('net').createServer().listen(22, '${address}', () => process.exit(0))`;
    expect((await origin.exec(['node', '-e', bind])).exitCode).toBe(0);
  });

  it('waits for a handshake', async () => {
    const { exitCode, networks } = await check(connector, '--for', 'handshake');
    expect(exitCode).toBe(3);
    expect(networks).toEqual([{ interface: 'cpn0', ready: false, missing: 'no peer has a fresh handshake' }]);
    const waiting = await connector.spawnCpn(['wait', 'office', '--for', 'handshake', '--timeout', '50']);
    await waiting.waitForLine(/no peer has a fresh handshake/);
    await connector.cpn(['reconcile']);
    // It sends what makes the handshake.
    expect(await waiting.exited).toMatchObject({ exitCode: 0 });
  });

  it.each([
    ['of the only network', ['--for', 'route', lan]],
    ['of a network named first', ['office', '--for', 'route', lan]],
    ['of a network named last', ['--for', 'route', lan, 'office']],
    ['that is part of another', ['--for', 'route', '192.168.50.64/26']],
    ['in the range of the network', ['--for', 'route', '10.77.0.0/24']],
  ])('waits for a route %s', async (_which, args) => {
    expect(await check(origin, ...args)).toEqual(ready);
  });

  it('goes on as soon as the route is there', async () => {
    await origin.exec(['ip', 'route', 'delete', lan, 'table', '8350']);
    const waiting = await origin.spawnCpn(['wait', '--for', 'route', lan, '--timeout', '50']);
    await waiting.waitForLine(/waiting: no route to 192\.168\.50\.0\/24 leads into cpn0/);
    await origin.cpn(['reconcile']);
    expect(await waiting.exited).toMatchObject({ exitCode: 0 });
  });

  it('does not accept a route of which a part leads elsewhere', async () => {
    await origin.exec(['ip', 'route', 'add', '192.168.50.7/32', 'via', '203.0.113.1']);
    const { exitCode, stderr } = await check(origin, '--for', 'route', lan);
    await origin.exec(['ip', 'route', 'delete', '192.168.50.7/32']);
    expect([exitCode, stderr]).toEqual([3, expect.stringMatching(/not ready .* 192\.168\.50\.7\/32 leads to eth0/)]);
  });

  it('names the command that brings up a network that was taken down', async () => {
    const down = await origin.cpn(['down', '--json']);
    expect(JSON.parse(down.stdout)).toEqual({ networks: [{ interface: 'cpn0', state: 'down' }] });
    const { exitCode, networks } = await check(origin);
    await origin.cpn(['up']);
    expect([exitCode, networks[0].missing]).toEqual([3, 'cpn0 was taken down; "cpn up cpn0" brings it up']);
    expect(await check(origin)).toEqual(ready);
  });

  it('gives up in the end, and has changed nothing', async () => {
    const before = await origin.state();
    const args = ['wait', '--for', 'route', '192.168.60.0/24', '--timeout', '1'];
    const { exitCode, stdout, stderr } = await origin.cpn(args, { allowFailure: true });
    expect([exitCode, stdout]).toEqual([3, '']);
    expect(stderr).toContain('not ready after 1 s: no route to 192.168.60.0/24 leads into cpn0');
    expect(await origin.state()).toBe(before);
  });

  it.each([
    [['--for', 'elsewhere'], '--for "elsewhere" must be one of address, handshake, route'],
    [['--for', 'route'], '--for route needs a CIDR'],
    [['--for', 'route', 'office'], '--for route needs a CIDR'],
    [['--for', 'route', '192.168.50.7/24'], 'has host bits set; you probably mean 192.168.50.0/24'],
    [['office', lan], 'leave out the second argument'],
    [['elsewhere'], 'has not joined a network "elsewhere"'],
    [['--timeout', 'long'], '--timeout "long" is not a number'],
  ])('%j is refused', async (args, message) => {
    const { exitCode, stderr } = await origin.cpn(['wait', ...args], { allowFailure: true });
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(message)]);
  });
});
