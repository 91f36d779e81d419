import { chmod, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startControlPlane } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';
import { openSession, type SshSession } from '../lab/ssh-session.ts';
import { join, type Office, plan, status } from './office.ts';

/**
 * A laptop with a full tunnel in a private LAN, and a DHCP server there that hands out routes by itself (option 121, RFC 3442). The
 * client and the server are busybox's; the client's script adds the routes as other clients do.
 */
let office: Office;
let connector: Host;
let visitor: Host;
let rogue: Host;
let laptop: Host;
let session: SshSession;
/** The laptop before it joined. */
let before: string;

const router = '203.0.113.254';
const [router6, visitor6, laptop6] = ['2001:db8::fe', '2001:db8::99', '2001:db8:7::22'];
const halves = ['0.0.0.0/1', '128.0.0.0/1'];

beforeAll(async () => {
  const lab = await Lab.start({ commandServers: true });
  const controlPlane = await startControlPlane(lab, '203.0.113.1', ['--allow-public-routes']);
  // The accepted private route has a table of its own, whose rules ask the main table first.
  const routes = ['--route', '0.0.0.0/0', '--route', '192.168.50.0/24'];
  await controlPlane.cpn(['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/24', ...routes]);
  office = { lab, controlPlane, api: ['--api', controlPlane.url, '--insecure-http'] };
  const gateway = await lab.addHost('router', { address: `${router}/24` });
  await gateway.exec([
    'sh',
    '-c',
    'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding',
  ]);
  await gateway.exec(['ip', '-6', 'address', 'add', `${router6}/64`, 'dev', 'eth0']);
  connector = await lab.addHost('connector', {
    address: ['203.0.113.11/24', '2001:db8::11/64'],
    gateway: [router, router6],
  });
  visitor = await lab.addHost('visitor', {
    address: ['203.0.113.99/24', `${visitor6}/64`],
    gateway: [router, router6],
  });
  await controlPlane.host.exec(['ip', 'route', 'add', 'default', 'via', router]);
  const lan = await lab.addLan(gateway, '192.168.7.1/24');
  await gateway.exec(['ip', '-6', 'address', 'add', '2001:db8:7::1/64', 'dev', 'eth1']);
  const plug = { address: ['192.168.7.22/24', `${laptop6}/64`], gateway: ['192.168.7.1', '2001:db8:7::1'] };
  laptop = await lab.addHost('laptop', { on: lan.segment, ...plug });
  rogue = await lan.addHost('rogue', '192.168.7.66/24', { routed: true });
  await rogue.exec(['sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward']);
  for (const host of [visitor, laptop]) await host.spawn(['node', '-e', echoAddress]).waitForLine(/listening/);
  session = await openSession(visitor, laptop);
  before = await laptop.state();
  await join(office, connector, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
  await join(office, laptop, '--type', 'admin_device', '--allow-route', '0.0.0.0/0');
  await connector.cpn(['reconcile']);
}, 90_000);

afterAll(() => office?.lab.stop());

/** The interface by which the laptop sends a packet of its own. */
async function way(to: string): Promise<string> {
  return JSON.parse((await laptop.exec(['ip', '-json', 'route', 'get', to])).stdout)[0].dev;
}

/** Takes a lease from the rogue server, and the routes with it. */
async function lease(routes: string, protocol = ''): Promise<void> {
  const { folder } = office.lab;
  const [config, script] = [path(folder, 'udhcpd.conf'), path(folder, 'udhcpc.sh')];
  const lines = ['start 192.168.7.22', 'end 192.168.7.22', 'interface eth0', 'option subnet 255.255.255.0'];
  const files = [`lease_file ${folder}/leases`, `pidfile ${folder}/udhcpd.pid`];
  await writeFile(config, [...lines, ...files, `option staticroutes ${routes}`, ''].join('\n'));
  await writeFile(path(folder, 'leases'), '');
  await writeFile(script, clientScript);
  await chmod(script, 0o755);
  const server = rogue.spawn(['busybox', 'udhcpd', '-f', config]);
  try {
    const argv = ['busybox', 'udhcpc', '-i', 'eth0', '-f', '-n', '-q', '-t', '10', '-T', '1', '-O', 'staticroutes'];
    await laptop.exec([...argv, '-s', script], { env: { PROTOCOL: protocol }, timeoutMs: 30_000 });
  } finally {
    await server.stop();
  }
}

/** As Debian's /etc/udhcpc/default.script does it; a route without a router is on the link. */
const clientScript = `#!/bin/sh
[ "$1" = bound ] || exit 0
set -- $staticroutes
while [ "$#" -ge 2 ]; do
  if [ "$2" = 0.0.0.0 ]; then ip route add "$1" dev "$interface" scope link $PROTOCOL
  else ip route add "$1" via "$2" dev "$interface" $PROTOCOL; fi
  shift 2
done
`;

async function forget(...routes: string[]): Promise<void> {
  for (const route of routes) await laptop.exec(['ip', 'route', 'del', route]);
}

async function diagnose() {
  const { stdout } = await laptop.cpn(['doctor', '--json'], { allowFailure: true });
  const { findings } = JSON.parse(stdout);
  return findings.filter(({ looked_at }: { looked_at: string }) =>
    looked_at.startsWith('routes that lead past the full'),
  );
}

const remedy = 'cpn set cpn0 --strict-tunnel';

describe('a full tunnel next to a DHCP server that hands out routes', () => {
  it('leaves the local subnet, the control plane and nothing else outside, and says so', async () => {
    expect(await way(visitor.address)).toBe('cpn0');
    const seen = await status(laptop);
    expect(seen.state).toBe('up');
    expect(seen.outside).toEqual([
      { prefix: '203.0.113.1/32', link: null, gateway: null, why: 'the control plane' },
      { prefix: '2001:db8:7::/64', link: 'eth0', gateway: null, why: 'this host is in this subnet' },
      { prefix: '192.168.7.0/24', link: 'eth0', gateway: null, why: 'this host is in this subnet' },
    ]);
    expect(await diagnose()).toMatchObject([{ verdict: 'ok' }]);
  });

  it('is degraded by routes that take half of the internet each, which doctor and explain name', async () => {
    await lease(halves.map((half) => `${half} 192.168.7.66`).join(', '));
    expect(await way(visitor.address)).toBe('eth0');
    const seen = await status(laptop);
    expect(seen.state).toBe('degraded');
    expect(seen.outside.slice(0, 2)).toMatchObject(
      halves.map((prefix) => ({ prefix, link: 'eth0', gateway: '192.168.7.66', why: 'a route of this host (boot)' })),
    );
    expect(seen.outside[0].problem).toContain(remedy);
    expect((await laptop.cpn(['status', '--check'], { allowFailure: true })).exitCode).toBe(3);
    expect((await laptop.cpn(['status'])).stdout).toMatch(
      /128\.0\.0\.0\/1 +eth0 via 192\.168\.7\.66 .*--strict-tunnel/,
    );
    expect(await diagnose()).toMatchObject([
      {
        verdict: 'problem',
        found: `0.0.0.0/1 by 192.168.7.66 on eth0 (boot) takes public addresses from the full tunnel`,
        remedy,
      },
      { verdict: 'problem', remedy },
    ]);
    const explained = JSON.parse((await laptop.cpn(['explain', visitor.address, '--json'])).stdout);
    expect(explained.checks[0].detail).toContain(
      `because of the route 128.0.0.0/1 by 192.168.7.66 on eth0 (boot); "${remedy}" sends these addresses into the tunnel`,
    );
    await forget(...halves);
    expect((await status(laptop)).state).toBe('up');
  });

  it('is degraded by a narrower public range that a DHCP client marks as its own, also on the link', async () => {
    await lease('203.0.113.96/29 0.0.0.0', 'proto dhcp');
    expect(await way(visitor.address)).toBe('eth0');
    expect(await status(laptop)).toMatchObject({
      state: 'degraded',
      outside: [{ prefix: '203.0.113.96/29', gateway: null, why: 'a route on the link (dhcp)' }, {}, {}, {}],
    });
    await forget('203.0.113.96/29');
  });

  it('notes a route that an administrator made, without being degraded', async () => {
    await laptop.exec(['ip', 'route', 'add', '198.51.100.0/24', 'via', '192.168.7.1', 'proto', 'static']);
    const seen = await status(laptop);
    expect(seen.state).toBe('up');
    expect(seen.outside).toContainEqual({
      ...{ prefix: '198.51.100.0/24', link: 'eth0', gateway: '192.168.7.1' },
      why: 'a route of this host (static)',
    });
    expect(await diagnose()).toMatchObject([
      { verdict: 'note', found: '198.51.100.0/24 by 192.168.7.1 on eth0 (static)' },
    ]);
  });
});

/** The address by which the server at `to` sees the client, or the error that it meets. */
async function call(from: Host, to: string): Promise<string> {
  const ask = `require('net').connect({port:7000,host:'${to}'}).on('data',(it)=>console.log(String(it))).on('error',(it)=>console.log(it.code))`;
  return (await from.exec(['node', '-e', ask])).stdout.trim();
}

const echoAddress = `
const tell = (socket) => socket.on('error', () => {}).end(socket.remoteAddress);
require('net').createServer(tell).listen(7000, '::', () => console.log('listening'));
`;

/** Connects as browsers do: to both addresses of a name, IPv6 first (RFC 8305). */
const callBoth = `
const addresses = [{ address: '${visitor6}', family: 6 }, { address: '203.0.113.99', family: 4 }];
const lookup = (name, options, done) => done(null, addresses);
require('net').connect({ host: 'both.example', port: 7000, lookup }).on('data', (it) => console.log(String(it)));
`;

async function resent(): Promise<string | undefined> {
  const { stdout } = await laptop.exec(['cat', '/proc/net/snmp']);
  return stdout
    .split('\n')
    .findLast((line) => line.startsWith('Tcp:'))
    ?.split(' ')[12];
}

describe('IPv6 of a host with a full tunnel', () => {
  it('is rejected at once: no packet is sent again, and IPv4 through the tunnel takes its place', async () => {
    const before = await resent();
    expect(await call(laptop, visitor6)).toBe('ECONNREFUSED');
    expect(await resent()).toBe(before);
    expect((await laptop.exec(['node', '-e', callBoth])).stdout.trim()).toBe('::ffff:203.0.113.11');
    const curl = ['curl', '-sv', '--http0.9', '--resolve', `both.example:7000:[${visitor6}],203.0.113.99`];
    expect((await laptop.exec([...curl, 'http://both.example:7000/'], { allowFailure: true })).stdout).toBe(
      '::ffff:203.0.113.11',
    );
    const ping = await laptop.exec(['ping', '-n', '-c', '1', '-W', '8', visitor6], { allowFailure: true });
    expect(ping.stdout + ping.stderr).toMatch(/not permitted|prohibited/);
  });

  it('still answers what comes in, and reaches its own subnet and its router', async () => {
    expect(await call(visitor, laptop6)).toBe(visitor6);
    for (const near of ['2001:db8:7::1', 'ff02::1%eth0']) {
      expect((await laptop.exec(['ping', '-n', '-c', '1', '-W', '8', near])).stdout).toContain(' 0% packet loss');
    }
    expect((await visitor.exec(['ping', '-n', '-c', '1', '-W', '8', laptop6])).stdout).toContain(' 0% packet loss');
  });

  it('is explained, with the option that lets it out', async () => {
    const explain = async (to: string) =>
      JSON.parse((await laptop.cpn(['explain', to, '--json'], { allowFailure: true })).stdout);
    const seen = await explain(visitor6);
    expect(seen.stops_at).toBe('firewall');
    expect(seen.checks.at(-1).detail).toContain('the full tunnel of network office rejects IPv6');
    expect(seen.checks.at(-1).detail).toContain('cpn set cpn0 --allow-ipv6-outside');
    expect(await explain('2001:db8:7::1')).toMatchObject({ stops_at: null });
  });

  it('carries the packets of WireGuard itself', async () => {
    await connector.cpn(['set', '--endpoint', '[2001:db8::11]:51820']);
    await laptop.cpn(['reconcile']);
    expect((await laptop.exec(['wg', 'show', 'cpn0', 'endpoints'])).stdout).toContain('[2001:db8::11]:51820');
    expect((await laptop.exec(['ping', '-n', '-c', '1', '-W', '12', '10.77.0.1'])).stdout).toContain(' 0% packet loss');
    await connector.cpn(['set', '--endpoint', '203.0.113.11:51820']);
    await laptop.cpn(['reconcile']);
  });

  it('is rejected for containers too, whose IPv4 enters the tunnel', async () => {
    const script = `ip netns add box; ip link add box0 type veth peer name eth0 netns box
      ip address add 2001:db8:c::1/64 dev box0 nodad; ip link set box0 up; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
      ip -n box address add 2001:db8:c::2/64 dev eth0 nodad; ip -n box link set eth0 up; ip -n box route add default via 2001:db8:c::1`;
    await laptop.exec(['sh', '-c', script]);
    const ask = `require('net').connect(7000,'${visitor6}').on('error',(it)=>console.log(it.code))`;
    expect((await laptop.exec(['ip', 'netns', 'exec', 'box', 'node', '-e', ask])).stdout.trim()).toBe('ECONNREFUSED');
    expect((await laptop.exec(['ip', 'netns', 'exec', 'box', 'ping', '-c', '1', '-W', '8', laptop6])).stdout).toContain(
      ' 0% packet loss',
    );
    await laptop.exec([
      'sh',
      '-c',
      'ip netns del box; umount /run/netns; rmdir /run/netns; echo 0 >/proc/sys/net/ipv6/conf/all/forwarding',
    ]);
  });

  it('goes out where that is allowed, as status says, and after the network was taken down', async () => {
    await laptop.cpn(['set', '--allow-ipv6-outside']);
    expect(await call(laptop, visitor6)).toBe(laptop6);
    const seen = await status(laptop);
    expect(seen.outside.map(({ why }: { why: string }) => why)).toContain('--allow-ipv6-outside');
    expect(seen.routes[0].reason).toBe('IPv6 and DNS queries to the resolver go outside the tunnel');
    await laptop.cpn(['set', '--no-allow-ipv6-outside']);
    expect(await call(laptop, visitor6)).toBe('ECONNREFUSED');
    await laptop.cpn(['down']);
    expect(await call(laptop, visitor6)).toBe(laptop6);
    await laptop.cpn(['up']);
    expect(await call(laptop, visitor6)).toBe('ECONNREFUSED');
    expect(await plan(laptop)).toEqual({ exitCode: 0, changes: [] });
  });
});

describe('a strict tunnel', () => {
  it('takes all of it, keeps the gateway, the LAN, the control plane and a session, and settles', async () => {
    await lease(halves.map((half) => `${half} 192.168.7.66`).join(', '));
    await laptop.cpn(['set', '--strict-tunnel']);
    expect({
      visitor: await way(visitor.address),
      static: await way('198.51.100.9'),
      gateway: await way('192.168.7.1'),
      neighbour: await way('192.168.7.66'),
      api: await way('203.0.113.1'),
      member: await way('10.77.0.1'),
      accepted: await way('192.168.50.9'),
    }).toEqual({
      ...{ visitor: 'cpn0', static: 'cpn0', gateway: 'eth0', neighbour: 'eth0', api: 'eth0' },
      ...{ member: 'cpn0', accepted: 'cpn0' },
    });
    const ping = await laptop.exec(['ping', '-n', '-c', '2', '-i', '0.2', '-W', '8', visitor.address]);
    expect(ping.stdout).toContain(' 0% packet loss');
    await session.type('still here');
    const seen = await status(laptop);
    expect(seen.state).toBe('up');
    expect(seen.outside.map(({ prefix }: { prefix: string }) => prefix)).toEqual([
      '203.0.113.1/32',
      '2001:db8:7::1/128',
      '192.168.7.0/24',
    ]);
    // Any neighbour can announce a public subnet.
    await rogue.exec(['ip', '-6', 'address', 'add', '2001:db8:66::66/64', 'dev', 'eth0', 'nodad']);
    await rogue.spawn(['node', '-e', echoAddress]).waitForLine(/listening/);
    await laptop.exec(['ip', '-6', 'address', 'add', '2001:db8:66::22/64', 'dev', 'eth0', 'nodad']);
    await laptop.cpn(['reconcile']);
    expect(await call(laptop, '2001:db8:66::66')).toBe('ECONNREFUSED');
    await laptop.exec(['ip', '-6', 'address', 'del', '2001:db8:66::22/64', 'dev', 'eth0']);
    await laptop.cpn(['reconcile']);
    expect(await plan(laptop)).toEqual({ exitCode: 0, changes: [] });
    expect(await diagnose()).toMatchObject([
      { verdict: 'ok', found: expect.stringContaining('--strict-tunnel overrides 3 others') },
    ]);
    const explained = JSON.parse((await laptop.cpn(['explain', visitor.address, '--json'])).stdout);
    expect(explained).toMatchObject({ network: { name: 'office' }, stops_at: null });
  });

  it('takes also what is on the link and public, or wider than a /16', async () => {
    await forget(...halves);
    await lease('203.0.113.96/29 0.0.0.0, 172.16.0.0/12 0.0.0.0, 172.20.0.0/16 0.0.0.0', 'proto dhcp');
    await laptop.exec(['ip', 'address', 'add', '100.100.1.1/10', 'dev', 'eth0']);
    await laptop.cpn(['reconcile']);
    expect({
      public: await way(visitor.address),
      wide: await way('172.30.0.1'),
      subnet: await way('100.64.0.1'),
      narrow: await way('172.20.0.1'),
    }).toEqual({ public: 'cpn0', wide: 'cpn0', subnet: 'cpn0', narrow: 'eth0' });
    await forget('203.0.113.96/29', '172.16.0.0/12', '172.20.0.0/16');
    await laptop.exec(['ip', 'address', 'del', '100.100.1.1/10', 'dev', 'eth0']);
  });

  it('follows the host: another LAN stays outside, and its rule goes with it', async () => {
    const rules = async () => (await laptop.exec(['ip', 'rule'])).stdout;
    await laptop.exec(['ip', 'address', 'add', '192.168.9.22/24', 'dev', 'eth0']);
    await laptop.cpn(['reconcile']);
    expect(await rules()).toContain('31460:\tfrom all to 192.168.9.0/24 lookup main');
    expect(await way('192.168.9.1')).toBe('eth0');
    await laptop.exec(['ip', 'address', 'del', '192.168.9.22/24', 'dev', 'eth0']);
    await laptop.cpn(['reconcile']);
    expect(await rules()).not.toContain('192.168.9.0/24');
  });

  it('is strict no more by --no-strict-tunnel, and leaves nothing behind', async () => {
    await laptop.cpn(['set', '--no-strict-tunnel']);
    expect(await way('198.51.100.9')).toBe('eth0');
    expect((await laptop.exec(['ip', 'rule'])).stdout).not.toMatch(/^3146\d:/m);
    await laptop.cpn(['set', '--strict-tunnel']);
    await forget('198.51.100.0/24');
    await laptop.cpn(['leave', '--yes', '--verify']);
    expect(await laptop.state()).toBe(before);
  });
});
