import { readFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { joinHost, startControlPlane } from '../lab/control-plane.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';
import { join, type Office, plan, status } from './office.ts';

/**
 * A connector on the wan that serves the default route, a visitor there who is in no network, and behind a router, on a site
 * of its own, an origin for which all of them and the control plane lie beyond its default gateway.
 */
let office: Office;
let connector: Host;
let visitor: Host;
let origin: Host;
/** The origin before it joined. */
let before: string;

const router = '203.0.113.254';
const everything = '0.0.0.0/0';

beforeAll(async () => {
  const lab = await Lab.start({ commandServers: true });
  const controlPlane = await startControlPlane(lab, '203.0.113.1', ['--allow-public-routes']);
  await controlPlane.cpn(['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/24', '--route', everything]);
  office = { lab, controlPlane, api: ['--api', controlPlane.url, '--insecure-http'] };
  const gateway = await lab.addHost('router', { address: `${router}/24` });
  await gateway.exec(['sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward']);
  connector = await lab.addHost('connector', { address: '203.0.113.11/24', gateway: router });
  visitor = await lab.addHost('visitor', { address: '203.0.113.99/24', gateway: router });
  await controlPlane.host.exec(['ip', 'route', 'add', 'default', 'via', router]);
  origin = await (await lab.addLan(gateway, '192.0.2.1/24')).addHost('origin', '192.0.2.22/24', { routed: true });
  for (const host of [visitor, origin]) await serve(host);
  before = await origin.state();
  await join(office, connector, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
  await join(office, origin, '--type', 'origin', '--allow-route', everything);
  await connector.cpn(['reconcile']);
}, 90_000);

afterAll(() => office?.lab.stop());

describe('a host that takes the default route of its network', () => {
  it("goes out through the connector, with the connector's address", async () => {
    expect(await call(origin, visitor.address)).toBe('203.0.113.11');
    expect((await status(origin)).routes).toEqual([
      {
        prefix: everything,
        via: 'connector',
        state: 'active',
        reason: 'DNS queries to the resolver go outside the tunnel; IPv6 is rejected',
      },
    ]);
  });

  it('is not reachable through the tunnel by a neighbour of the connector, which it reaches itself', async () => {
    await visitor.exec(['ip', 'route', 'add', '10.77.0.0/24', 'via', connector.address]);
    const argv = ['ping', '-n', '-c', '2', '-i', '0.2', '-W', '1', '10.77.0.2'];
    expect((await visitor.exec(argv, { allowFailure: true })).stdout).toContain(' 0 received');
    await connector.exec(['sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward']);
    expect((await visitor.exec(argv, { allowFailure: true })).stdout).toContain(' 0 received');
    await connector.exec(['sh', '-c', 'echo 0 >/proc/sys/net/ipv4/ip_forward']);
    await connector.cpn(['reconcile']);
    expect(await call(origin, visitor.address)).toBe('203.0.113.11');
  });

  it('still answers clients from outside', async () => {
    expect(await call(visitor, '192.0.2.22')).toBe(visitor.address);
  });

  it('still reaches the control plane, outside the tunnel, and has nothing to change', async () => {
    await connector.uplink.cut();
    try {
      expect((await origin.cpn(['reconcile'])).exitCode).toBe(0);
      expect(await plan(origin)).toEqual({ exitCode: 0, changes: [] });
      expect((await status(origin)).state).toBe('up');
    } finally {
      await connector.uplink.restore();
    }
  });

  it('is explained: what goes through the tunnel, and what stays outside', async () => {
    const explain = async (to: string) => JSON.parse((await origin.cpn(['explain', to, '--json'])).stdout);
    const inside = await explain(visitor.address);
    expect(inside).toMatchObject({ network: { name: 'office' }, stops_at: null });
    expect(inside.checks[1].detail).toBe(
      'leaves by cpn0 from 10.77.0.2, by the default route of table 8349 (made by cpn)',
    );
    const outside = await explain('203.0.113.1');
    expect(outside).toMatchObject({ network: null, stops_at: null });
    expect(outside.checks[0].detail).toMatch(/it stays outside the full tunnel of network office$/);
    expect(outside.checks[1].detail).toMatch(/^leaves by eth0 via 192\.0\.2\.1 /);
  });

  it('marks the objects it made', async () => {
    const rules = JSON.parse((await origin.exec(['ip', '-json', '-details', '-Numeric', 'rule'])).stdout);
    const ours = rules.filter(({ protocol }: { protocol: string }) => protocol === '157');
    expect(ours.map(({ priority }: { priority: number }) => priority)).toEqual([
      31570, 31570, 31571, 31573, 31574, 31575, 2147483647,
    ]);
    expect((await origin.exec(['wg', 'show', 'cpn0', 'fwmark'])).stdout.trim()).toBe('0x209d');
    expect((await origin.exec(['ip', 'route', 'show', 'default'])).stdout).toMatch(
      /^default via 192.0.2.1 dev eth0 *\n$/,
    );
  });

  it.each([
    ['a rule is deleted', 'rule delete priority 31574', 'add', '31574: not from all fwmark 0x209d lookup 8349'],
    [
      'a rule is added',
      'rule add to 203.0.113.99 lookup main priority 31000 protocol 157',
      'remove',
      '31000: from all to 203.0.113.99/32 lookup main',
    ],
  ])('is mended after %s by hand', async (_what, command, action, target) => {
    await origin.exec(['ip', ...command.split(' ')]);
    expect(await call(origin, visitor.address)).toBe('192.0.2.22');
    expect(await plan(origin)).toMatchObject({ exitCode: 3, changes: [{ action, kind: 'rule', target }] });
    await origin.cpn(['reconcile']);
    expect(await plan(origin)).toEqual({ exitCode: 0, changes: [] });
    expect(await call(origin, visitor.address)).toBe('203.0.113.11');
  });

  it('follows its own addresses', async () => {
    await origin.exec(['ip', 'address', 'add', '192.0.2.23/24', 'dev', 'eth0']);
    await origin.cpn(['reconcile']);
    expect((await origin.exec(['ip', 'rule'])).stdout).toContain('31570:\tfrom 192.0.2.23 goto 31575');
    await origin.exec(['ip', 'address', 'delete', '192.0.2.23/24', 'dev', 'eth0']);
    await origin.cpn(['reconcile']);
    expect((await origin.exec(['ip', 'rule'])).stdout).not.toContain('192.0.2.23');
  });

  it('does so for one network alone, and keeps its rules when the other goes', async () => {
    const { controlPlane } = office;
    await controlPlane.cpn(['network', 'create', '--name', 'lab', '--cidr', '10.78.0.0/24', '--route', everything]);
    const flags = (...more: string[]) => ({ network: 'lab', flags: ['--wait', '0', ...more] });
    await joinHost(controlPlane, connector, flags('--type', 'connector', '--endpoint', '203.0.113.11:51821'));
    await joinHost(controlPlane, origin, flags('--type', 'origin', '--allow-route', everything));
    const { networks } = JSON.parse((await origin.cpn(['status', '--json'])).stdout);
    expect(networks[1].routes).toMatchObject([
      { state: 'refused', reason: 'overlaps 0.0.0.0/0 of network office (cpn0)' },
    ]);
    expect(await plan(origin)).toEqual({ exitCode: 0, changes: [] });
    const rules = async () => (await origin.exec(['ip', 'rule'])).stdout;
    const known = await rules();
    await origin.cpn(['leave', '--yes', 'lab']);
    await origin.cpn(['reconcile']);
    expect(await rules()).toBe(known);
  });

  it('is cleaned up by down, also after its interface was lost', async () => {
    const network = async () => (await origin.state()).split('# files')[0];
    await origin.exec(['ip', 'link', 'delete', 'cpn0']);
    await origin.cpn(['down']);
    expect(await network()).toBe(before.split('# files')[0]);
    expect(await call(origin, visitor.address)).toBe('192.0.2.22');
  });

  it('may be brought up by wg-quick at boot, whose rules and table are taken as they are', async () => {
    await origin.cpn(['up']);
    const file = await readFile(path(origin.configDir, 'cpn0.conf'), 'utf8');
    expect(file).toContain('FwMark = 0x209d\n');
    expect(file).toMatch(/^AllowedIPs = .*0\.0\.0\.0\/0/m);
    expect(file).not.toMatch(/Table|Post|Pre(Up|Down)/);
    await origin.reboot();
    await serve(origin);
    await origin.exec(['wg-quick', 'up', 'cpn0']);
    // Only the bypass routes and the packet rules are missing, which wg-quick does not have.
    expect(await plan(origin)).toMatchObject({
      exitCode: 3,
      changes: [
        { action: 'add', kind: 'firewall', target: 'inet cpn_cpn0' },
        { action: 'add', kind: 'rule', target: '32766: from all nop' },
        { action: 'add', kind: 'rule', target: '31570: from all fwmark 0x10000000/0x10000000 goto 32766' },
        { action: 'add', kind: 'rule', target: '31570: from 192.0.2.22/32 goto 32766' },
        { action: 'add', kind: 'rule', target: '31571: from all to 203.0.113.1/32 goto 32766' },
        { action: 'add', kind: 'rule', target: '2147483647: not from all fwmark 0x209d lookup 8349' },
      ],
    });
    await origin.cpn(['reconcile']);
    const rules = (await origin.exec(['ip', 'rule'])).stdout;
    expect(rules).toMatch(/^32764:\tfrom all lookup main suppress_prefixlength 0 *$/m);
    expect(rules).toMatch(/^32765:\tnot from all fwmark 0x209d lookup 8349 *$/m);
    expect(rules.match(/lookup 8349/g)).toHaveLength(2);
    expect(await plan(origin)).toEqual({ exitCode: 0, changes: [] });
    expect(await call(origin, visitor.address)).toBe('203.0.113.11');
    expect(await call(visitor, '192.0.2.22')).toBe(visitor.address);
  });

  it('goes out directly again when no connector serves the route any more', async () => {
    // A map that is suddenly empty needs a second answer.
    await join(office, await office.lab.addHost('bystander', { address: '203.0.113.44/24' }), '--type', 'admin_device');
    await connector.cpn(['leave', '--yes', '--all']);
    await origin.cpn(['reconcile']);
    expect((await origin.exec(['ip', 'rule'])).stdout).not.toMatch(/lookup 8349|suppress_prefixlength|^315/m);
    expect((await origin.exec(['ip', 'route', 'show', 'table', 'all'])).stdout).not.toContain('8349');
    expect((await origin.exec(['wg', 'show', 'cpn0', 'fwmark'])).stdout.trim()).toBe('off');
    expect(await plan(origin)).toEqual({ exitCode: 0, changes: [] });
    expect((await status(origin)).routes).toMatchObject([{ prefix: everything, state: 'missing' }]);
    expect(await call(origin, visitor.address)).toBe('192.0.2.22');
  });

  it('is as if it had never joined, after it left', async () => {
    // wg-quick's own table, which wg-quick alone takes away.
    await origin.exec(['nft', 'delete', 'table', 'ip', 'wg-quick-cpn0']);
    await origin.cpn(['leave', '--yes', '--verify']);
    expect(await origin.state()).toBe(before);
  });
});

/** The client's address as the server at `to` sees it. */
function call(from: Host, to: string): Promise<string> {
  const ask = `require('net').connect({port:7000,host:'${to}',timeout:2000}).on('data',(it)=>console.log(String(it))).on('timeout',()=>process.exit(1))`;
  return eventually('an answer', async () => (await from.exec(['node', '-e', ask])).stdout.trim());
}

/** Starts a server on port 7000 that sends each client its address, and survives clients that are gone by then. */
async function serve(host: Host): Promise<void> {
  await host.spawn(['node', '-e', echoAddress]).waitForLine(/listening/);
}

const echoAddress = `
const tell = (socket) => socket.on('error', () => {}).end(socket.remoteAddress);
require('net').createServer(tell).listen(7000, '0.0.0.0', () => console.log('listening'));
`;
