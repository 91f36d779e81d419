import { readFile, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FaultyProxy } from '../faults/faulty-proxy.ts';
import { joinHost, makeKey } from '../lab/control-plane.ts';
import { startDaemon } from '../lab/daemon.ts';
import type { Host } from '../lab/host.ts';
import { Owner } from '../lab/owner.ts';
import { openSession, type SshSession } from '../lab/ssh-session.ts';
import { join, type Office, patiently, plan, startOffice, status } from './office.ts';

/**
 * A host on a site behind a router, with a LAN of its own, a default gateway that is in none of its subnets, a resolver, an SSH
 * session from outside, and a network that it joined before. The office it joins through a control plane that lies.
 */
let office: Office;
let proxy: FaultyProxy;
let host: Host;
let session: SshSession;
let key: string;
/** The host while the office has nothing but good routes. */
let baseline: string;

const router = '203.0.113.254';
const gateway = '198.18.0.1';
const good = '192.168.50.0/24';
const printer = '192.168.50.10';

beforeAll(async () => {
  office = await startOffice();
  const { lab, controlPlane } = office;
  const routerHost = await lab.addHost('router', { address: `${router}/24` });
  await routerHost.exec(['sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward']);
  const site = await lab.addLan(routerHost, '192.0.2.1/24');
  await routerHost.exec(['ip', 'address', 'add', `${gateway}/32`, 'dev', 'eth1']);
  const desk = await lab.addSegment('desk');
  await routerHost.plug(desk, { address: '198.51.101.1/24' });
  const admin = await lab.addHost('admin', { on: desk, address: '198.51.101.5/24', gateway: '198.51.101.1' });
  proxy = await FaultyProxy.start(lab, controlPlane, 2);
  for (const each of [proxy.host, controlPlane.host]) await each.exec(['ip', 'route', 'add', 'default', 'via', router]);

  const connector = await lab.addHost('connector', { address: '203.0.113.11/24', gateway: router });
  await (await lab.addLan(connector, '192.168.50.1/24')).addHost('printer', `${printer}/24`);
  await join(office, connector, '--type', 'connector', '--endpoint', `${connector.address}:51820`);

  host = await site.addHost('guarded', '192.0.2.22/24');
  await host.plug(await lab.addSegment('own-lan'), { address: '192.168.20.5/24' });
  await host.exec(['ip', 'route', 'add', 'default', 'via', gateway, 'dev', 'eth0', 'onlink']);
  await host.exec(['ip', 'route', 'add', '172.31.0.0/16', 'via', gateway, 'dev', 'eth0', 'onlink']);
  await writeFile(path(host.etcDir, 'resolv.conf'), 'nameserver 198.51.100.53\n');
  session = await openSession(admin, host);
  await controlPlane.cpn(['network', 'create', '--name', 'other', '--cidr', '10.78.0.0/24']);
  await joinHost(controlPlane, host, { network: 'other', flags: ['--interface', 'other', '--wait', '0'] });
  key = await makeKey(controlPlane, 'office', 'guarded');
  await joinOffice();
  await new Owner(controlPlane).addStranger(1, 'other', null);
  await Promise.all([connector, host].map((each) => each.cpn(['reconcile', 'office'])));
  expect(await host.ping(printer, patiently)).toMatchObject({ received: 1 });
  baseline = await readRouting();
}, 120_000);

afterAll(() => office?.lab.stop());

/** Joins the office, or joins it again, with other flags. */
async function joinOffice(...flags: string[]): Promise<void> {
  const argv = ['join', '-', '--api', proxy.url, '--insecure-http', '--type', 'admin_device', '--wait', '0', ...flags];
  await host.cpn(argv, { input: key });
}

/** All that decides where packets go: the wg-quick file, WireGuard's allowed IPs, routes and rules. */
async function readRouting(): Promise<string> {
  const commands = 'wg show cpn0 allowed-ips; ip -4 route show table all; ip -6 route show table all; ip rule';
  const { stdout } = await host.exec(['sh', '-c', commands]);
  return `${await readFile(path(host.configDir, 'cpn0.conf'), 'utf8')}${stdout}`;
}

/** Without the good route, which is in the main table where it is let through, and without the rules that lead to the other one. */
function withoutPlaces(text: string): string {
  const lines = text.split('\n');
  return lines.filter((line) => !line.startsWith(`${good} dev cpn0 `) && !/^314\d\d:/.test(line)).join('\n');
}

/** The host has what it needs: the good route, the session, the control plane; and nothing to change. */
async function expectUnharmed(): Promise<void> {
  expect(await host.ping(printer, patiently)).toMatchObject({ received: 1 });
  await session.type(`still here ${performance.now()}`);
  expect((await host.cpn(['reconcile'])).stderr).not.toContain('unreachable');
  expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
}

describe('a route that would harm the host', () => {
  const cuts = 'cuts the host off';
  const taken = 'is in the kernel already, which takes no second one';

  /** Which route, why it is refused, and why no flag accepts it here. */
  it.each<[what: string, route: string, reason: string, but?: string]>([
    ['is the default route', '0.0.0.0/0', 'is the default route', 'has tests of its own'],
    ['is the lower half of it', '0.0.0.0/1', 'is half of the default route'],
    [
      'is the upper half of it',
      '128.0.0.0/1',
      'is half of the default route',
      'takes the other network’s control plane',
    ],
    ['is the default route of IPv6', '::/0', 'is the default route', 'is refused even so'],
    ['holds loopback addresses', '127.0.0.0/8', 'overlaps loopback addresses'],
    ['holds link-local addresses', '169.254.0.0/16', 'overlaps link-local addresses'],
    ['holds multicast addresses', '224.0.0.0/4', 'overlaps multicast addresses'],
    ['is the host’s own LAN', '192.168.20.0/24', 'overlaps 192.168.20.0/24, which this host is in (eth1)', taken],
    ['is a part of its LAN', '192.168.20.128/25', 'overlaps 192.168.20.0/24, which this host is in (eth1)'],
    ['holds another network', '10.78.0.0/16', 'overlaps 10.78.0.0/24 of network other (other)'],
    ['is a part of another network', '10.78.0.128/25', 'overlaps 10.78.0.0/24, which this host is in (other)'],
    ['is routed elsewhere', '172.31.0.0/16', 'is already routed to eth0 on this host', taken],
    ['covers the control plane', '203.0.113.0/29', 'covers the control plane (203.0.113.3)', cuts],
    [
      'covers its connector’s endpoint',
      '203.0.113.8/29',
      'covers the endpoint of connector, which serves it (203.0.113.11)',
      cuts,
    ],
    ['covers the default gateway', '198.18.0.0/24', `covers the default gateway (${gateway})`],
  ])('as it %s is refused alone, unless a person lets it through', async (_what, route, reason, but) => {
    await proxy.inject({ kind: 'map', changes: { network: { routes: [route, good] } } });
    await host.cpn(['reconcile', 'office']);
    const refused = { prefix: route, via: 'connector', state: 'refused', reason };
    const active = { prefix: good, via: 'connector', state: 'active' };
    expect((await status(host)).routes).toEqual([refused, active]);
    expect(await readRouting()).toBe(baseline);
    await expectUnharmed();
    if (but !== undefined) return;

    await joinOffice('--allow-route', route);
    expect((await status(host)).routes).toMatchObject([{ prefix: route, state: 'active' }, active]);
    for (const place of [
      'ip -4 route show table all dev cpn0',
      'wg show cpn0 allowed-ips',
      `cat ${host.configDir}/cpn0.conf`,
    ]) {
      expect((await host.exec(place.split(' '))).stdout).toContain(route);
    }
    await expectUnharmed();
    await host.cpn(['set', 'office', '--refuse-route', route]);
    expect(await readRouting()).toBe(baseline);
  });

  it('is let through alone: what lies within it stays refused', async () => {
    const [part, within] = ['198.18.0.0/24', '198.18.0.0/28'];
    await proxy.inject({ kind: 'map', changes: { network: { routes: [part, within, good] } } });
    await host.cpn(['reconcile', 'office']);
    await joinOffice('--allow-route', part);
    expect((await status(host)).routes).toMatchObject([{ state: 'active' }, { state: 'refused' }, { state: 'active' }]);
    await host.cpn(['set', 'office', '--refuse-route', part]);
    expect(await readRouting()).toBe(baseline);
  });
});

describe('a route that is taken but for a part of it', () => {
  const gone = async () => {
    await proxy.pass();
    await host.cpn(['reconcile', 'office']);
    expect(await readRouting()).toBe(baseline);
  };
  const routeTo = async (address: string) => (await host.exec(['ip', 'route', 'get', address])).stdout;

  it.each([
    ['a resolver', '198.51.100.0/24', '198.51.100.53'],
    ['an SSH client', '198.51.101.0/24', '198.51.101.5'],
  ])('leaves %s outside', async (what, route, address) => {
    await proxy.inject({ kind: 'map', changes: { network: { routes: [route, good] } } });
    const { stdout } = await host.cpn(['reconcile', 'office', '--json']);
    expect(JSON.parse(stdout).networks[0].changes).toContainEqual({
      ...{ action: 'add', kind: 'route', target: `${address}/32`, before: null },
      ...{ after: 'throw table 8351', reason: `${what} stays outside the tunnel` },
    });
    const reason = `${address} stays outside: ${what}`;
    expect((await status(host)).routes[0]).toEqual({ prefix: route, via: 'connector', state: 'active', reason });
    expect(await routeTo(address)).toMatch(/dev eth0/);
    expect(await routeTo(address.replace(/\d+$/, '9'))).toMatch(/dev cpn0 table 8351/);
    expect((await host.cpn(['explain', address], { allowFailure: true })).stdout).toContain(
      `it is in the route ${route} of network office, and stays outside: ${what}`,
    );
    await expectUnharmed();
    // What is lost of it comes back.
    await host.exec(['ip', 'route', 'delete', 'throw', `${address}/32`, 'table', '8351']);
    await host.cpn(['reconcile', 'office']);
    expect(await routeTo(address)).toMatch(/dev eth0/);
    await expectUnharmed();
    await gone();
  });

  it('leaves a narrower subnet of the host local', async () => {
    const wide = '192.168.16.0/20';
    await proxy.inject({ kind: 'map', changes: { network: { routes: [wide, good] } } });
    await host.cpn(['reconcile', 'office']);
    const reason = '192.168.20.0/24 of it leads to eth1';
    const seen = await status(host);
    expect(seen).toMatchObject({ state: 'up', routes: [{ prefix: wide, state: 'active', reason }, {}] });
    expect(await routeTo('192.168.20.9')).toMatch(/dev eth1/);
    expect(await routeTo('192.168.21.9')).toMatch(/dev cpn0/);
    expect((await host.cpn(['explain', '192.168.20.9'], { allowFailure: true })).stdout).toContain(
      `it is in the route ${wide} of network office, and stays local: this host is in 192.168.20.0/24 (eth1)`,
    );
    await host.cpn(['wait', 'office', '--for', 'route', wide, '--timeout', '5']);
    await expectUnharmed();
    await gone();
  });
});

describe('a peer that names an endpoint in a route, or in the network itself', () => {
  it.each([
    ['192.168.50.99:51820', `lies in the route ${good} of connector`],
    ['10.77.0.200:51820', "lies in the network's own range 10.77.0.0/24"],
  ])('at %s changes no route: it is treated like a peer without an endpoint', async (endpoint, reason) => {
    const other = async () =>
      (await status(host)).peers.find(({ name }: { readonly name: string }) => name === 'other');
    for (const flags of [[], ['--allow-route', good]]) {
      await joinOffice(...flags);
      await proxy.inject({ kind: 'map', changes: { peers: { other: { endpoint } } } });
      await host.cpn(['reconcile', 'office']);
      expect((await status(host)).routes).toEqual([{ prefix: good, via: 'connector', state: 'active' }]);
      expect(await other()).toMatchObject({ endpoint: null, endpoint_refused: `${endpoint} ${reason}` });
      expect((await host.cpn(['status'])).stdout).toContain(`endpoint not used: ${endpoint} ${reason}`);
      if (flags.length === 0) expect(await readRouting()).toBe(baseline);
      else expect(withoutPlaces(await readRouting())).toBe(withoutPlaces(baseline));
      await expectUnharmed();
      await proxy.pass();
      await host.cpn(['reconcile', 'office']);
      expect((await other()).endpoint_refused).toBeUndefined();
    }
    await host.cpn(['set', 'office', '--refuse-route', good]);
  });

  it('is logged by the daemon, once when it begins and once when it ends', async () => {
    const daemon = await startDaemon(host, '--interval', '1');
    const linesOf = (msg: string) => daemon.log.filter((line) => line.msg === msg);
    await proxy.inject({ kind: 'map', changes: { peers: { other: { endpoint: '192.168.50.99:51820' } } } });
    const line = await daemon.awaitLog('the endpoint', ({ msg }) => msg === "a peer's endpoint is not used");
    expect(line).toMatchObject({ interface: 'cpn0', peer: 'other' });
    await session.type(`still here ${performance.now()}`);
    await proxy.pass();
    await daemon.awaitLog('the end', ({ msg }) => msg === "over: a peer's endpoint is not used");
    expect(linesOf("a peer's endpoint is not used")).toHaveLength(1);
    await daemon.stop();
  });
});
