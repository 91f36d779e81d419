import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startDaemon } from '../lab/daemon.ts';
import { DnsServer } from '../lab/dns.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Owner } from '../lab/owner.ts';
import type { Process } from '../lab/process.ts';
import { sshArgs, startSshd } from '../lab/ssh-server.ts';
import { join, type Office, patiently, plan, startOffice, status } from './office.ts';

/**
 * A host behind a router that also leads to 192.168.50.0/24 and 198.51.100.0/24: there are the server that the host's dnsmasq queries,
 * and the clients of its OpenSSH. The office has LANs with the same prefixes behind its connector.
 */
let office: Office;
let host: Host;
let connector: Host;
let admin: Host;
/** A host in the LAN behind the connector, with a resolver. */
let internal: Host;
/** The resolver outside. */
let dns: DnsServer;
let keys: string;

const lan = '192.168.50.0/24';
const desks = '198.51.100.0/24';
const [server, printer] = ['192.168.50.53', '192.168.50.10'];
const [adminAddress, strangerAddress] = ['198.51.100.5', '198.51.100.6'];
const hostAddress = '192.0.2.22';

beforeAll(async () => {
  keys = await mkdtemp(path(tmpdir(), 'cpn-keys-'));
  office = await startOffice({ flags: ['--allow-public-routes'] });
  const { lab, controlPlane } = office;
  const router = await lab.addHost('router', { address: '203.0.113.254/24' });
  await router.exec(['sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward']);
  const site = await lab.addSegment('site');
  await router.plug(site, { address: '192.0.2.1/24' });
  const servers = await lab.addSegment('servers');
  await router.plug(servers, { address: '192.168.50.1/24' });
  const resolver = await lab.addHost('resolver', { on: servers, address: `${server}/24`, gateway: '192.168.50.1' });
  dns = await DnsServer.start(resolver, { 'db.example': ['192.0.2.99'] });
  const offices = await lab.addSegment('desks');
  await router.plug(offices, { address: '198.51.100.1/24' });
  admin = await lab.addHost('admin', { on: offices, address: `${adminAddress}/24`, gateway: '198.51.100.1' });
  await admin.exec(['ip', 'address', 'add', `${strangerAddress}/24`, 'dev', 'eth0']);
  await controlPlane.host.exec(['ip', 'route', 'add', 'default', 'via', '203.0.113.254']);

  connector = await lab.addHost('connector', { address: '203.0.113.11/24', gateway: '203.0.113.254' });
  internal = await (await lab.addLan(connector, '192.168.50.1/24')).addHost('printer', `${printer}/24`);
  await join(office, connector, '--type', 'connector', '--endpoint', `${connector.address}:51820`);

  host = await lab.addHost('stubborn', { on: site, address: `${hostAddress}/24`, gateway: '192.0.2.1' });
  await host.exec(['sh', '-ec', startSshd(keys, 22)]);
  await startDnsmasq();
}, 90_000);

afterAll(async () => {
  await office?.lab.stop();
  await rm(keys, { recursive: true, force: true });
});

const dnsmasq = ['--keep-in-foreground', '--conf-file=/dev/null', '--no-resolv', '--cache-size=0', '--user=root'];

async function startDnsmasq(): Promise<Process> {
  const stub = host.spawn([
    'dnsmasq',
    ...dnsmasq,
    '--listen-address=127.0.0.1',
    '--bind-interfaces',
    `--server=${server}`,
  ]);
  await eventually('dnsmasq answers', async () => (await lookUp()) === '192.0.2.99');
  return stub;
}

/** The address of a name that only the server outside has. */
async function lookUp(): Promise<string> {
  const { stdout } = await host.exec(['getent', 'ahostsv4', 'db.example'], { allowFailure: true });
  return stdout.split(' ')[0] ?? '';
}

const routeTo = async (address: string) => (await host.exec(['ip', 'route', 'get', address])).stdout;
const throwsOf = async () => (await host.exec(['ip', 'route', 'show', 'table', 'all', 'type', 'throw'])).stdout;
const reconcile = async () => {
  for (const each of [connector, host]) await each.cpn(['reconcile']);
};
const setRoutes = (...routes: string[]) => new Owner(office.controlPlane).setRoutes(1, routes);

describe('the server that a local resolver queries', () => {
  it('stays outside of an accepted route, and answers on', async () => {
    await join(office, host, '--type', 'admin_device');
    await connector.cpn(['reconcile']);
    const reason = `${server} stays outside: a resolver`;
    expect((await status(host)).routes).toEqual([{ prefix: lan, via: 'connector', state: 'active', reason }]);
    expect(await host.ping(printer, patiently)).toMatchObject({ received: 1 });
    expect(await lookUp()).toBe('192.0.2.99');
    expect(await routeTo(server)).toMatch(/via 192.0.2.1 dev eth0/);
    expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
    const { stdout } = await host.cpn(['doctor', '--all'], { allowFailure: true });
    expect(stdout).toContain('the local resolver 127.0.0.1 (dnsmasq)');
    expect(stdout).toContain(`queries ${server} (kept outside the tunnel)`);
    expect(stdout).toMatch(new RegExp(`the resolver ${server}, which stays outside the tunnel: +answers`));
    await dns.serve('silent');
    const silent = await host.cpn(['doctor'], { allowFailure: true });
    expect(silent.stdout).toContain(`cpn set cpn0 --allow-route ${lan}`);
    await dns.serve({ 'db.example': ['192.0.2.99'] });
  });

  it('stays outside after a reboot, before the local resolver runs', async () => {
    await host.reboot();
    await host.cpn(['up', 'office']);
    expect(await routeTo(printer)).toMatch(/dev cpn0/);
    expect(await routeTo(server)).toMatch(/dev eth0/);
    await host.exec(['sh', '-ec', startSshd(keys, 22)]);
    await startDnsmasq();
    await host.cpn(['reconcile']);
    expect(await lookUp()).toBe('192.0.2.99');
    expect(await routeTo(server)).toMatch(/dev eth0/);
  });

  it('is named by a plan where wg-quick brought the file up', async () => {
    await host.reboot();
    await host.exec(['wg-quick', 'up', `${host.configDir}/cpn0.conf`]);
    expect(await throwsOf()).toBe('');
    expect((await plan(host)).changes).toContainEqual(
      expect.objectContaining({ action: 'add', kind: 'route', target: `${server}/32` }),
    );
    await host.cpn(['reconcile']);
    expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
    expect(await routeTo(server)).toMatch(/dev eth0/);
    await host.exec(['sh', '-ec', startSshd(keys, 22)]);
    await startDnsmasq();
  });
});

describe('a local resolver of an ordinary user', () => {
  it('keeps none of its servers outside', async () => {
    const resolvConf = path(host.etcDir, 'resolv.conf');
    const before = await readFile(resolvConf, 'utf8');
    await host.exec(['sh', '-c', 'echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start']);
    await writeFile(resolvConf, 'nameserver 127.0.0.9\n');
    const unprivileged = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--no-new-privs'];
    const listen = ['--listen-address=127.0.0.9', '--bind-interfaces', '--pid-file='];
    const stub = host.spawn([...unprivileged, 'dnsmasq', ...dnsmasq, ...listen, `--server=${printer}`]);
    await eventually('it listens', async () => (await host.exec(['ss', '-lun'])).stdout.includes('127.0.0.9:53'));
    await host.cpn(['reconcile']);
    expect(await routeTo(printer)).toMatch(/dev cpn0/);
    const { stdout } = await host.cpn(['doctor', '--all'], { allowFailure: true });
    expect(stdout).toMatch(/the local resolver 127\.0\.0\.9: user 65534, not a system user, listens there/);
    await stub.stop();
    await writeFile(resolvConf, before);
    await host.cpn(['reconcile']);
  });
});

describe('an SSH session', () => {
  it('stays outside of a route that comes, and a connection that did not log in does not', async () => {
    const daemon = await startDaemon(host);
    const ssh = sshArgs(keys, '-b', adminAddress, `root@${hostAddress}`, 'cat');
    const session = admin.spawn(ssh, { holdInput: true });
    const type = async (line: string) => {
      session.writeInput(`${line}\n`);
      await session.waitForLine(new RegExp(`^${line}$`));
    };
    await type('hello');
    const idle = `require('net').connect({ host: '${hostAddress}', port: 22, localAddress: '${strangerAddress}' })
      .once('data', () => console.log('connected'))`;
    await admin.spawn(['node', '-e', idle]).waitForLine(/connected/);
    await setRoutes(lan, desks);
    const route = { prefix: desks, state: 'active', reason: `${adminAddress} stays outside: an SSH client` };
    await eventually('the route is taken', async () => {
      expect((await status(host)).routes).toContainEqual(expect.objectContaining(route));
      return true;
    });
    expect(await routeTo(adminAddress)).toMatch(/dev eth0/);
    expect(await routeTo(strangerAddress)).toMatch(/dev cpn0/);
    await type('still here');
    // What another program takes away of it is put back while the session lasts.
    await host.exec(['ip', 'route', 'delete', 'throw', `${adminAddress}/32`, 'table', '8350']);
    await eventually('the route of the client is back', async () => (await routeTo(adminAddress)).includes('dev eth0'));
    await type('and still');
    session.closeInput();
    await session.exited;
    await host.cpn(['reconcile']);
    expect(await throwsOf()).not.toContain(adminAddress);
    expect(await throwsOf()).toContain(server);
    await daemon.stop();
  });
});

describe('a resolver behind the connector', () => {
  it('answers again after its route was gone', async () => {
    await DnsServer.start(internal, { 'db.example': ['192.0.2.50'], 'cp.example': ['203.0.113.1'] });
    await setRoutes(lan);
    await reconcile();
    const file = path(host.etcDir, 'resolv.conf');
    await writeFile(file, `nameserver ${printer}\nnameserver 127.0.0.1\noptions timeout:1 attempts:1\n`);
    await reconcile();
    expect(await lookUp()).toBe('192.0.2.50');
    // The control plane has a name that only this resolver knows.
    const { port } = new URL(office.controlPlane.url);
    await host.cpn(['set', '--api', `http://cp.example:${port}`, '--insecure-http']);
    await dns.serve('silent');
    await setRoutes();
    await reconcile();
    expect(await routeTo(printer)).toMatch(/dev eth0/);
    // Other programs restore the kernel's rules without its mark; they are no reason to leave the table of accepted routes.
    const rules = ['32766 lookup main', '32767 lookup default'];
    for (const rule of rules) await host.exec(['sh', '-ec', `ip rule del pref ${rule}; ip rule add pref ${rule}`]);
    await setRoutes(lan);
    await reconcile();
    expect(await lookUp()).toBe('192.0.2.50');
    expect(await routeTo(server)).toMatch(/dev eth0/);
  });
});

describe('what keeps addresses outside', () => {
  it('goes with the network', async () => {
    expect(JSON.parse(await readFile(path(host.stateDir, 'cpn0.json'), 'utf8')).keptOutside).toHaveLength(1);
    await host.cpn(['leave', 'office', '--yes', '--verify']);
    expect(await throwsOf()).toBe('');
  });
});
