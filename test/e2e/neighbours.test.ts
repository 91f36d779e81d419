import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { joinHost } from '../lab/control-plane.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import type { Process } from '../lab/process.ts';
import { dialSession, type SshSession, serveSessions } from '../lab/ssh-session.ts';
import { join, type Office, patiently, plan, startOffice, status } from './office.ts';

/**
 * A server with a WAN, a management LAN and two networks, and a connector with a LAN, next to hosts that are in no network. No daemon
 * runs: tests run the passes.
 */
let office: Office;
let server: Host;
let member: Host;
/** On the WAN, with a route to the tunnel addresses and the address of a member. */
let neighbour: Host;
/** In the management LAN of the server. */
let manager: Host;
/** Behind a bridge of the server that has no network card. */
let container: Host;
/** What UDP brought to the server's tunnel address. */
let received: Process;

const [own, memberAddress, second] = ['10.77.0.1', '10.77.0.2', '10.78.0.1'];
const [wan, management, gateway] = ['203.0.113.11', '10.20.0.1', '172.18.0.1'];

beforeAll(async () => {
  office = await startOffice({ flags: ['--allow-public-routes'] });
  const { lab, controlPlane } = office;
  server = await lab.addHost('server', { address: `${wan}/24` });
  member = await lab.addHost('member', { address: '203.0.113.12/24' });
  neighbour = await lab.addHost('neighbour', { address: '203.0.113.66/24' });
  manager = await (await lab.addLan(server, `${management}/24`)).addHost('manager', '10.20.0.9/24', { routed: true });
  await join(office, server, '--endpoint', `${wan}:51820`);
  await join(office, member, '--endpoint', '203.0.113.12:51820');
  await controlPlane.cpn(['network', 'create', '--name', 'lab', '--cidr', '10.78.0.0/24']);
  await joinHost(controlPlane, server, { network: 'lab', flags: ['--wait', '0', '--type', 'origin'] });
  await server.cpn(['reconcile']);
  await sh(neighbour, `ip route add 10.77.0.0/24 via ${wan}; ip address add ${memberAddress}/32 dev lo`);
  await aim(own, management, second, gateway);
  await serve(server, own, 8080);
  await serve(server, '0.0.0.0', 8081);
  received = server.spawn(['node', '-e', udpServer], { holdInput: true });
  await received.waitForLine(/ready/);
  expect(await member.ping(own, patiently)).toMatchObject({ received: 1 });
}, 90_000);

afterAll(() => office?.lab.stop());

const sh = async (host: Host, script: string) => (await host.exec(['sh', '-ec', script])).stdout.trim();

/** Has the member send packets for other addresses than its tunnel address to a peer. */
async function aim(at: string, ...addresses: string[]): Promise<void> {
  const allowed = [at, ...addresses].map((each) => `${each}/32`).join();
  const key = `$(wg show cpn0 allowed-ips | grep -F '${at}/32' | cut -f1)`;
  const routes = addresses.map((each) => `ip route replace ${each} dev cpn0`);
  await sh(member, [`wg set cpn0 peer "${key}" allowed-ips ${allowed}`, ...routes].join('\n'));
}

/** Answers each connection with the name of the host. */
async function serve(host: Host, address: string, port: number): Promise<void> {
  const script = `require('net').createServer((each) => each.on('error', () => {}).end('${host.name}\\n'))
    .listen(${port}, '${address}', () => console.log('listening'))`;
  await host.spawn(['node', '-e', script], { holdInput: true }).waitForLine(/listening/);
}

const udpServer = `const socket = require('dgram').createSocket('udp4');
  socket.on('message', (text, { address }) => console.log(address, text.toString())).bind(9000, '${own}', () => console.log('ready'));`;

/** The host whose answer comes from a port; null without one. */
async function reach(from: Host, address: string, port = 8081): Promise<string | null> {
  const dial = 'exec 3<>"/dev/tcp/$0/$1" && head -n 1 <&3';
  const { stdout } = await from.exec(['timeout', '1', 'bash', '-c', dial, address, String(port)], {
    allowFailure: true,
  });
  return stdout.trim() || null;
}

/** Sends a datagram to the server's tunnel address with a source. */
const send = (from: Host, source: string, text: string) =>
  from.exec([
    'node',
    '-e',
    `const s = require('dgram').createSocket('udp4'); s.bind(0, '${source}', () => s.send('${text}', 9000, '${own}', () => s.close()))`,
  ]);

/** Sends a datagram with a source route to that address: the option LSRR (RFC 791), after a no-operation. */
const sendBySourceRoute = (from: Host, source: string, text: string) =>
  from.exec([
    'python3',
    '-c',
    `import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('${source}', 0))
s.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, bytes([1, 131, 7, 4]) + socket.inet_aton('${wan}'))
s.sendto(b'${text}', ('${own}', 9000))`,
  ]);

/** The forged datagrams that came in before one of the member did. */
async function forgedUntil(text: string): Promise<string[]> {
  await send(member, memberAddress, text);
  await received.waitForLine(new RegExp(text));
  return received.output.stdout.split('\n').filter((line) => line.includes(' forged'));
}

describe('a neighbour of a host', () => {
  let session: SshSession;
  const forged = ['first', 'route'].map((text) => `${memberAddress} forged ${text}`);

  it('reaches the tunnel address where there are no packet rules', async () => {
    await sh(server, 'nft delete table inet cpn_cpn0');
    expect(await reach(neighbour, own, 8080)).toBe('server');
    await sh(server, 'echo 0 >/proc/sys/net/ipv4/conf/eth0/rp_filter');
    await sh(server, 'echo 1 >/proc/sys/net/ipv4/conf/all/accept_source_route');
    await send(neighbour, memberAddress, 'forged first');
    await sendBySourceRoute(neighbour, memberAddress, 'forged route');
    expect(await forgedUntil('open')).toEqual(forged);
    // The second network gets the rules against source routes.
    const changes = ['add', 'update'].map((action) => ({ kind: 'firewall', action }));
    expect(await plan(server)).toMatchObject({ exitCode: 3, changes });
  });

  it('reaches nothing there with them, also with the address of a peer and in connections that are known', async () => {
    await serveSessions(server);
    session = await dialSession(neighbour, own);
    const echo = `require('net').createServer((each) => each.on('error', () => {}).on('data', (text) => console.log(text.toString().trim())))
      .listen(8090, () => console.log('listening'))`;
    const heard = server.spawn(['node', '-e', echo], { holdInput: true });
    await heard.waitForLine(/listening/);
    const speak = (host: Host) =>
      host.spawn(['node', '-e', `process.stdin.pipe(require('net').connect(8090, '${own}'))`], { holdInput: true });
    const known = speak(manager);
    known.writeInput('one\n');
    await heard.waitForLine(/one/);

    await server.cpn(['reconcile']);
    expect(await plan(server)).toEqual({ exitCode: 0, changes: [] });
    for (const port of [8080, 8081, 22]) expect(await reach(neighbour, own, port)).toBeNull();
    expect(await reach(manager, own)).toBeNull();
    for (const value of [0, 2]) {
      await sh(server, `for each in all eth0; do echo ${value} >/proc/sys/net/ipv4/conf/$each/rp_filter; done`);
      await send(neighbour, memberAddress, `forged ${value}`);
      await sendBySourceRoute(neighbour, memberAddress, `forged route ${value}`);
      expect(await forgedUntil(`closed ${value}`)).toEqual(forged);
    }
    known.writeInput('two\n');
    speak(member).writeInput('three\n');
    await heard.waitForLine(/three/);
    expect(heard.output.stdout).not.toContain('two');

    for (const port of [8080, 8081]) expect(await reach(member, own, port)).toBe('server');
    // Its other addresses are as they were.
    expect(await reach(neighbour, wan)).toBe('server');
    expect(await reach(manager, management)).toBe('server');
  });

  it('keeps an SSH session to it that was there before, which status names until it ends', async () => {
    const named = `the SSH session from 203.0.113.66 to ${own} stays until it ends; a new one is refused: only the tunnel leads to ${own} from now on`;
    await session.type('still here');
    expect((await status(server)).warnings).toContain(named);
    await server.cpn(['reconcile']);
    await session.type('and still');
    await session.end();
    await eventually('the session is over', async () => {
      await server.cpn(['reconcile']);
      return !((await status(server)).warnings ?? []).includes(named);
    });
    expect(await sh(server, 'nft list table inet cpn_cpn0')).not.toContain('accept-session');
    expect(await plan(server)).toEqual({ exitCode: 0, changes: [] });
  });
});

describe('a member', () => {
  it('reaches no other address of a host through the tunnel, and keeps an SSH session that did', async () => {
    await sh(server, 'nft delete table inet cpn_cpn0; nft delete table inet cpn_cpn1');
    for (const address of [management, second]) expect(await reach(member, address)).toBe('server');
    const session = await dialSession(member, management);
    await server.cpn(['reconcile']);
    for (const address of [management, second]) expect(await reach(member, address)).toBeNull();
    expect(await reach(member, management, 22)).toBeNull();
    await session.type('on');
    expect((await status(server)).warnings.join()).toContain(
      `from ${memberAddress} to ${management} stays until it ends`,
    );
    await session.end();
  });

  it('answers what the host began', async () => {
    await serve(member, '0.0.0.0', 8081);
    expect(await reach(server, memberAddress)).toBe('member');
  });
});

describe('containers', () => {
  beforeAll(async () => {
    const { lab } = office;
    const segment = await lab.addSegment('containers');
    container = await lab.addHost('container', { address: '172.18.0.2/16', gateway, on: segment });
    const card = await server.plug(segment, { address: '172.18.0.9/16' });
    const nat = `table ip nat {
      chain in { type nat hook prerouting priority -100; fib daddr type local tcp dport 8082 dnat to 172.18.0.2:8081; }
      chain out { type nat hook postrouting priority 100; oifname != "docker0" ip saddr 172.18.0.0/16 masquerade; }
    }`;
    await sh(
      server,
      `ip address flush dev ${card.name}; ip link add docker0 type bridge; ip link set ${card.name} master docker0
       ip address add ${gateway}/16 dev docker0; ip link set docker0 up; echo 1 >/proc/sys/net/ipv4/ip_forward`,
    );
    await server.exec(['nft', '-f', '-'], { input: nat });
    await serve(container, '0.0.0.0', 8081);
    await server.cpn(['reconcile']);
  });

  it('reach the tunnel address of their host, and the network through it', async () => {
    expect(await reach(container, own)).toBe('server');
    expect(await reach(container, memberAddress)).toBe('member');
  });

  it('are reached at its published port by members, and by neighbours at the other addresses alone', async () => {
    expect(await reach(member, own, 8082)).toBe('container');
    expect(await reach(neighbour, wan, 8082)).toBe('container');
    expect(await reach(neighbour, own, 8082)).toBeNull();
    for (const address of [management, gateway]) expect(await reach(member, address, 8082)).toBeNull();
  });

  it('make no difference to members where no connection is tracked', async () => {
    const raw = 'table ip raw { chain in { type filter hook prerouting priority -300; iifname "cpn0" notrack; }; }';
    await server.exec(['nft', '-f', '-'], { input: raw });
    expect(await reach(member, own)).toBe('server');
    for (const address of [management, gateway]) expect(await reach(member, address)).toBeNull();
    await sh(server, 'nft delete table ip raw');
  });

  it('are reached by no member at an address that another program redirects', async () => {
    await aim(own, '10.96.0.1');
    await sh(server, `nft add rule ip nat in ip daddr 10.96.0.1 tcp dport 443 dnat to ${wan}:8081`);
    expect(await reach(manager, '10.96.0.1', 443)).toBe('server');
    expect(await reach(member, '10.96.0.1', 443)).toBeNull();
    await sh(server, 'nft delete table ip nat');
    await aim(own, management, second, gateway);
  });

  it('are not behind a network card that has no address yet', async () => {
    const card = await server.plug(await office.lab.addSegment('waiting'), { address: [] });
    await server.cpn(['reconcile']);
    expect(await plan(server)).toEqual({ exitCode: 0, changes: [] });
    const rules = await sh(server, 'nft list chain inet cpn_cpn0 arriving');
    expect([rules.includes('"docker0"'), rules.includes(`"${card.name}"`)]).toEqual([true, false]);
  });

  it('are not behind a bridge that has a network card', async () => {
    const segment = await office.lab.addSegment('bridged');
    const guest = await office.lab.addHost('guest', { address: '10.30.0.9/24', on: segment, gateway: '10.30.0.1' });
    const card = await server.plug(segment, { address: '10.31.0.1/24' });
    await sh(
      server,
      `ip link add link ${card.name} name below0 type macvlan mode bridge; ip link add br0 type bridge; ip link set below0 master br0
       ip link set below0 up; ip address add 10.30.0.1/24 dev br0; ip link set br0 up`,
    );
    await server.cpn(['reconcile']);
    expect(await reach(guest, '10.30.0.1')).toBe('server');
    expect(await reach(guest, own)).toBeNull();
    // An interface that comes later is closed until it is known.
    await sh(server, 'ip link set docker0 down; ip link set docker0 name docker1; ip link set docker1 up');
    expect(await reach(container, gateway)).toBe('server');
    expect(await reach(container, own)).toBeNull();
    await server.cpn(['reconcile']);
    expect(await reach(container, own)).toBe('server');
  });
});

describe('a connector', () => {
  const [at, lan] = ['10.77.0.3', '192.168.50.1'];
  let router: Host;
  let printer: Host;
  let outsider: Host;

  beforeAll(async () => {
    const { lab } = office;
    router = await lab.addHost('router', { address: '203.0.113.13/24', gateway: '203.0.113.66' });
    printer = await (await lab.addLan(router, `${lan}/24`)).addHost('printer', '192.168.50.10/24', { routed: true });
    outsider = await (await lab.addLan(router, '192.168.70.1/24')).addHost('outsider', '192.168.70.10/24', {
      routed: true,
    });
    await join(office, router, '--type', 'connector', '--endpoint', '203.0.113.13:51820');
    await member.cpn(['reconcile']);
    await serve(router, '0.0.0.0', 8081);
    expect(await member.ping(at, patiently)).toMatchObject({ received: 1 });
  });

  it('is reached by the LAN that it serves, and by no other network', async () => {
    expect(await reach(printer, at)).toBe('router');
    expect(await reach(outsider, at)).toBeNull();
    await sh(
      outsider,
      'ip address add 192.168.50.77/32 dev lo; ip route replace 10.77.0.3 via 192.168.70.1 src 192.168.50.77',
    );
    await sh(router, 'for each in all eth1 eth2; do echo 0 >/proc/sys/net/ipv4/conf/$each/rp_filter; done');
    const refused = async () => Number(/packets (\d+)/.exec(await sh(router, 'nft list table inet count'))?.[1]);
    await router.exec(['nft', '-f', '-'], {
      input: `table inet count { chain in { type filter hook input priority -300; ip saddr 192.168.50.77 ip daddr ${at} counter; }; }`,
    });
    expect(await reach(outsider, at)).toBeNull();
    expect(await refused()).toBe(0);
  });

  it('is reached by members at what it serves, and at no other address', async () => {
    await aim(at, lan, '192.168.70.1');
    expect(await reach(member, lan)).toBe('router');
    expect(await reach(member, '192.168.70.1')).toBeNull();
  });

  it('that serves a default route opens none of its addresses by it', async () => {
    await office.controlPlane.cpn(['network', 'update', 'office', '--add-route', '0.0.0.0/0']);
    await router.cpn(['reconcile']);
    expect(await sh(router, 'nft list table inet cpn_cpn0')).toContain('accept-exit');
    await aim(at, lan, '192.168.70.1', '203.0.113.66');
    await serve(neighbour, '0.0.0.0', 8081);
    expect(await reach(member, '203.0.113.66')).toBe('neighbour');
    expect(await reach(member, '192.168.70.1')).toBeNull();
    expect(await reach(member, lan)).toBe('router');
  });
});

it('a host without nft works as before, and says that its tunnel address is open', async () => {
  await sh(
    member,
    'cp -a /usr/sbin/nft /run/nft-kept; mount --bind /dev/null /usr/sbin/nft; nft list tables && exit 1; true',
  );
  const open =
    'neighbours can reach the tunnel address 10.77.0.2 of this host without the tunnel: nft is missing or cannot be used';
  expect((await status(member)).warnings.join()).toContain(open);
  expect((await member.cpn(['status'])).stdout).toContain(open);
  const findings = JSON.parse((await member.cpn(['doctor', '--json'], { allowFailure: true })).stdout);
  expect(JSON.stringify(findings)).toContain(open);
  await member.cpn(['reconcile']);
  expect(await plan(member)).toEqual({ exitCode: 0, changes: [] });
  expect(await reach(server, memberAddress)).toBe('member');
  await member.cpn(['leave', '--yes']);
  await sh(member, 'umount --lazy /usr/sbin/nft');
});
