import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { joinHost } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import type { Process } from '../lab/process.ts';
import { join, type Office, patiently, plan, startOffice } from './office.ts';

/**
 * A server with a WAN, a management LAN and two networks, next to hosts that are in no network. No daemon runs: tests run the passes.
 */
let office: Office;
let server: Host;
let member: Host;
/** On the WAN, with a route to the tunnel address and the address of a member. */
let neighbour: Host;
let manager: Host;
/** What UDP brought to the server's tunnel address. */
let received: Process;

const [own, memberAddress, second] = ['10.77.0.1', '10.77.0.2', '10.78.0.1'];
const [management, containers] = ['10.20.0.1', '172.18.0.1'];

beforeAll(async () => {
  office = await startOffice();
  const { lab, controlPlane } = office;
  server = await lab.addHost('server', { address: '203.0.113.11/24' });
  member = await lab.addHost('member', { address: '203.0.113.12/24' });
  neighbour = await lab.addHost('neighbour', { address: '203.0.113.66/24' });
  manager = await (await lab.addLan(server, `${management}/24`)).addHost('manager', '10.20.0.9/24', { routed: true });
  await join(office, server, '--endpoint', '203.0.113.11:51820');
  await join(office, member, '--endpoint', '203.0.113.12:51820');
  await controlPlane.cpn(['network', 'create', '--name', 'lab', '--cidr', '10.78.0.0/24']);
  await joinHost(controlPlane, server, { network: 'lab', flags: ['--wait', '0', '--type', 'origin'] });
  await server.cpn(['reconcile']);
  await sh(neighbour, `ip route add 10.77.0.0/24 via 203.0.113.11; ip address add ${memberAddress}/32 dev lo`);
  // The member sends what it likes into the tunnel.
  const others = ['203.0.113.11', management, second, containers];
  const allowed = [own, ...others].map((each) => `${each}/32`).join();
  await sh(member, `wg set cpn0 peer "$(wg show cpn0 peers)" allowed-ips ${allowed}`);
  await sh(
    member,
    others
      .slice(1)
      .map((each) => `ip route add ${each} dev cpn0`)
      .join('; '),
  );
  await serve(server, own, 8080);
  await serve(server, '0.0.0.0', 8081);
  received = server.spawn(['node', '-e', udpServer], { holdInput: true });
  await received.waitForLine(/ready/);
  expect(await member.ping(own, patiently)).toMatchObject({ received: 1 });
}, 90_000);

afterAll(() => office?.lab.stop());

const sh = async (host: Host, script: string) => (await host.exec(['sh', '-ec', script])).stdout.trim();

/** Answers each connection with the name of the host. */
async function serve(host: Host, address: string, port: number): Promise<void> {
  const script = `require('net').createServer((each) => each.on('error', () => {}).end(${JSON.stringify(host.name)} + '\\n'))
    .listen(${port}, '${address}', () => console.log('listening'))`;
  await host.spawn(['node', '-e', script], { holdInput: true }).waitForLine(/listening/);
}

const udpServer = `const socket = require('dgram').createSocket('udp4');
  socket.on('message', (text, { address }) => console.log(address, text.toString())).bind(9000, '${own}', () => console.log('ready'));`;

/** Whose answer comes from a port; null where none comes. */
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

/** The datagrams that came in before one of the member did. */
async function datagramsUntil(text: string): Promise<string[]> {
  await send(member, memberAddress, text);
  await received.waitForLine(new RegExp(text));
  return received.output.stdout.split('\n').filter((line) => line.includes(' forged'));
}

describe('a neighbour of a host', () => {
  it('reaches the tunnel address without packet rules', async () => {
    await sh(server, 'nft delete table inet cpn_cpn0');
    expect(await reach(neighbour, own, 8080)).toBe('server');
    await sh(server, 'echo 0 >/proc/sys/net/ipv4/conf/eth0/rp_filter');
    await send(neighbour, memberAddress, 'forged first');
    expect(await datagramsUntil('open')).toEqual([`${memberAddress} forged first`]);
    expect(await plan(server)).toMatchObject({ exitCode: 3, changes: [{ kind: 'firewall', action: 'add' }] });
  });

  it('reaches nothing at it with them, also with the address of a peer', async () => {
    await server.cpn(['reconcile']);
    expect(await plan(server)).toEqual({ exitCode: 0, changes: [] });
    for (const port of [8080, 8081]) expect(await reach(neighbour, own, port)).toBeNull();
    expect(await reach(manager, own)).toBeNull();
    for (const value of [0, 2]) {
      await sh(server, `for each in all eth0; do echo ${value} >/proc/sys/net/ipv4/conf/$each/rp_filter; done`);
      await send(neighbour, memberAddress, `forged ${value}`);
      expect(await datagramsUntil(`closed ${value}`)).toEqual([`${memberAddress} forged first`]);
    }
    for (const port of [8080, 8081]) expect(await reach(member, own, port)).toBe('server');
    // Its other addresses are as they were.
    expect(await reach(neighbour, '203.0.113.11')).toBe('server');
    expect(await reach(manager, management)).toBe('server');
  });
});

describe('a member', () => {
  it('reaches no other address of a host through the tunnel', async () => {
    for (const address of [management, second]) expect(await reach(member, address)).toBeNull();
    await sh(server, 'nft delete table inet cpn_cpn0; nft delete table inet cpn_cpn1');
    for (const address of [management, second]) expect(await reach(member, address)).toBe('server');
    await server.cpn(['reconcile']);
    for (const address of [management, second]) expect(await reach(member, address)).toBeNull();
  });
});
