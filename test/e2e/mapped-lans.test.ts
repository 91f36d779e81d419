import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, joinHost, makeKey, startControlPlane } from '../lab/control-plane.ts';
import { startDaemon } from '../lab/daemon.ts';
import { DnsServer } from '../lab/dns.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';
import { startResolved } from '../lab/resolved.ts';
import { Flow } from './flow.ts';
import { patiently, plan, status } from './office.ts';
import { call, listen } from './tcp.ts';

/**
 * Two sites with the same LAN, 192.168.1.0/24, and a laptop at home in a LAN with that range too. Site A masquerades, site B
 * does not. The network has the sites as 10.201.1.0/24 and 10.201.2.0/24.
 */
let lab: Lab;
let controlPlane: ControlPlane;
let laptop: Host;
let laptopAddress: string;
let [siteA, siteB]: Site[] = [];

interface Site {
  readonly edge: Host;
  readonly server: Host;
  /** The addresses of the connector in the tunnel, and of its LAN interface and the server in the network. */
  readonly tunnel: string;
  readonly own: string;
  readonly address: string;
}

const local = '192.168.1.0/24';
const mapOf = (number: number) => `10.201.${number}.0/24=${local}`;

async function addSite(number: number, ...flags: string[]): Promise<Site> {
  const edge = await lab.addHost(`edge-${number}`, { address: `203.0.113.${30 + number}/24` });
  const server = await (await lab.addLan(edge, '192.168.1.1/24')).addHost(`server-${number}`, '192.168.1.10/24', {
    routed: true,
  });
  // Only the packet rules keep anything from being forwarded.
  await edge.exec(['sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward']);
  const route = `10.201.${number}.0/24`;
  const key = await makeKey(controlPlane, 'office', edge.name, '--type', 'connector', '--route', route);
  const named = ['--api', controlPlane.url, '--insecure-http', '--name', edge.name, '--type', 'connector', '--json'];
  const more = ['--endpoint', `${edge.address}:51820`, '--wait', '0', '--map', mapOf(number), ...flags];
  const joined = JSON.parse((await edge.cpn(['join', '-', ...named, ...more], { input: key })).stdout);
  await listen(server);
  await listen(edge);
  await startDaemon(edge);
  return { edge, server, tunnel: joined.address, own: `10.201.${number}.1`, address: `10.201.${number}.10` };
}

beforeAll(async () => {
  lab = await Lab.start({ commandServers: true });
  controlPlane = await startControlPlane(lab);
  const routes = ['--route', '10.201.1.0/24', '--route', '10.201.2.0/24'];
  await controlPlane.cpn(['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/24', ...routes]);
  siteA = await addSite(1, '--probe', '192.168.1.10:8080');
  siteB = await addSite(2, '--no-masquerade');
  const home = await lab.addNat('home', { outside: '203.0.113.40/24', inside: '192.168.1.1/24' });
  laptop = await home.addHost('laptop', '192.168.1.10/24');
  const flags = ['--type', 'admin_device', '--wait', '0'];
  laptopAddress = (await joinHost(controlPlane, laptop, { network: 'office', flags })).address;
  await listen(laptop);
  for (const { edge, tunnel } of [siteA, siteB] as Site[]) {
    await eventually(
      `${edge.name} reaches the laptop`,
      async () => (await laptop.ping(tunnel, patiently)).received === 1,
    );
  }
}, 120_000);

afterAll(() => lab?.stop());

describe('two sites with the same LAN', { timeout: 120_000 }, () => {
  it('are reached at once from a laptop in a LAN with that range, each by its own addresses', async () => {
    const [a, b] = [siteA as Site, siteB as Site];
    expect(await call(laptop, a.address, 100_000)).toBe('192.168.1.1');
    expect(await call(laptop, b.address, 100_000)).toBe(laptopAddress);
    const [first, second] = [
      await Flow.start(laptop, a.server, a.address),
      await Flow.start(laptop, b.server, b.address),
    ];
    expect(await first.arriving()).toBeGreaterThanOrEqual(9);
    expect(await second.arriving()).toBeGreaterThanOrEqual(9);
    expect([await first.stop(), await second.stop()]).toEqual([0, 0]);
    // Its own LAN stays its own.
    expect((await laptop.ping('192.168.1.1')).received).toBe(1);
  });

  it('reach the laptop and each other, with a source of the network', async () => {
    const [a, b] = [siteA as Site, siteB as Site];
    expect(await call(a.server, laptopAddress)).toBe(a.tunnel);
    expect(await call(b.server, laptopAddress)).toBe(b.address);
    await eventually('the sites have a session', async () => (await a.edge.ping(b.tunnel, patiently)).received === 1);
    expect(await call(a.server, b.address)).toBe(a.tunnel);
    expect(await call(b.server, a.address)).toBe(b.address);
  });

  it('have a connector whose own address in the LAN is reached too', async () => {
    for (const { own, edge, tunnel } of [siteA, siteB] as Site[]) {
      expect(await call(laptop, own)).toBe(laptopAddress);
      expect(await call(laptop, tunnel)).toBe(laptopAddress);
      expect(await plan(edge)).toEqual({ exitCode: 0, changes: [] });
      expect(await status(edge)).toMatchObject({ state: 'up', drift: [] });
    }
  });

  it.each([
    ['A', () => siteA as Site],
    ['B', () => siteB as Site],
  ])('are reached by no address of the LAN itself, through the tunnel, at site %s', async (name, find) => {
    const { edge, server, tunnel, address } = find();
    const route = address.replace(/10$/, '0/24');
    const { stdout } = await laptop.exec(['wg', 'show', 'cpn0', 'allowed-ips']);
    const key =
      stdout
        .split('\n')
        .find((line) => line.includes(`${tunnel}/32`))
        ?.split('\t')[0] ?? '';
    const own = `${tunnel}/32,${route}`;
    // 192.168.1.11 is a second address of the server, to which only the tunnel leads here.
    await server.exec(['ip', 'address', 'add', '192.168.1.11/24', 'dev', 'eth0']);
    // Without a connection, a SYN-ACK has the state invalid.
    const begins = 'tcp flags & (syn|rst) == syn tcp dport 8080';
    const forging = `chain c { type filter hook output priority 0; ${begins} tcp flags set syn | ack; }`;
    await laptop.exec(['nft', '-f', '-'], { input: `table inet forge { ${forging}; }` });
    const arrivals = (match: string) =>
      `table inet watch { chain c { type filter hook prerouting priority -300; ${match} icmp type echo-request counter; ${match} ${begins} counter; }; }`;
    await server.exec(['nft', '-f', '-'], { input: arrivals('ip daddr 192.168.1.11') });
    await edge.exec(['nft', '-f', '-'], { input: arrivals(`iifname "cpn0" ip daddr ${local}`) });
    /** The number of pings that arrived, and whether forged packets did: their sender repeats them. */
    const seen = async (host: Host) => {
      const rules = (await host.exec(['nft', 'list', 'table', 'inet', 'watch'])).stdout;
      const [pings = 0, forged = 0] = [...rules.matchAll(/counter packets (\d+)/g)].map(([, packets]) =>
        Number(packets),
      );
      return { pings, forged: forged > 0 };
    };
    const connect = (to: string) =>
      laptop.exec(['timeout', '2', 'bash', '-c', `: >/dev/tcp/${to}/8080`], { allowFailure: true });
    await laptop.exec(['wg', 'set', 'cpn0', 'peer', key, 'allowed-ips', `${own},${local}`]);
    for (const each of ['192.168.1.11', '192.168.1.1']) {
      await laptop.exec(['ip', 'route', 'replace', `${each}/32`, 'dev', 'cpn0', 'table', '8349']);
    }
    await laptop.exec(['ip', 'rule', 'add', 'priority', '100', 'lookup', '8349']);
    for (const each of ['192.168.1.11', '192.168.1.1']) {
      expect((await laptop.ping(each)).received).toBe(0);
      await connect(each);
    }
    expect(await seen(edge)).toEqual({ pings: 2, forged: true });
    expect(await seen(server)).toEqual({ pings: 0, forged: false });
    const mapped = address.replace(/10$/, '11');
    expect((await laptop.ping(mapped)).received).toBe(1);
    await connect(mapped);
    // Where the connector masquerades, it maps only packets of known connections.
    expect(await seen(server)).toEqual({ pings: 1, forged: name === 'B' });
    await laptop.exec(['ip', 'rule', 'del', 'priority', '100']);
    await laptop.exec(['wg', 'set', 'cpn0', 'peer', key, 'allowed-ips', own]);
    await laptop.exec(['nft', 'delete', 'table', 'inet', 'forge']);
  });

  it('send nothing with the source of another site, or with their own mapped one', async () => {
    for (const { server } of [siteA, siteB] as Site[]) {
      for (const address of ['10.201.1.66', '10.201.2.66']) {
        await server.exec(['ip', 'address', 'add', `${address}/32`, 'dev', 'eth0']);
        expect((await server.ping(laptopAddress, { source: address })).received).toBe(0);
        await server.exec(['ip', 'address', 'del', `${address}/32`, 'dev', 'eth0']);
      }
      expect((await server.ping(laptopAddress)).received).toBe(1);
    }
  });

  it('show both addresses where they are mapped', async () => {
    const { edge } = siteA as Site;
    expect((await status(edge)).routes).toContainEqual(
      expect.objectContaining({ prefix: '10.201.1.0/24', state: 'active', local }),
    );
    const explain = async (address: string) => (await edge.cpn(['explain', address], { allowFailure: true })).stdout;
    expect(await explain('10.201.1.10')).toContain('192.168.1.10');
    expect(await explain('192.168.1.10')).toContain('10.201.1.10');
    const { id } = JSON.parse((await controlPlane.cpn(['network', 'show', 'office', '--json'])).stdout);
    await eventually('the control plane has both', async () => {
      const reply = JSON.parse((await controlPlane.cpn(['api', 'GET', `/api/networks/${id}/health`])).stdout);
      const maps = reply.data.peers.flatMap(({ map = [] }: { map?: { route: string }[] }) => map);
      return maps.length === 2 && maps.every((each: { local: string }) => each.local === local);
    });
  });

  it('keep their source where another program masquerades the LAN, whose rules are loaded later', async () => {
    const { edge, server, address } = siteB as Site;
    const rule = `ip saddr ${local} ip daddr != ${local} masquerade`;
    const chain = `chain c { type nat hook postrouting priority 100; ${rule}; }`;
    await edge.exec(['nft', '-f', '-'], { input: `table ip libvirt { ${chain}; }` });
    expect(await call(server, laptopAddress)).toBe(address);
    expect(await call(laptop, address)).toBe(laptopAddress);
    await edge.exec(['nft', 'delete', 'table', 'ip', 'libvirt']);
  });

  it('map a route inside that of their map too, and explain their own addresses by no wider route', async () => {
    const [inside, wider] = ['10.201.1.0/25', '192.168.0.0/16'];
    const { edge, tunnel, address } = siteA as Site;
    const routed = (...routes: string[]) =>
      controlPlane.cpn(['peer', 'update', 'office', edge.name, ...routes.flatMap((route) => ['--route', route])]);
    await controlPlane.cpn(['network', 'update', 'office', '--add-route', inside, '--add-route', wider]);
    await routed('10.201.1.0/24', inside);
    const served = { prefix: inside, state: 'active', local: '192.168.1.0/25' };
    await eventually('the connector serves it', async () =>
      (await status(edge)).routes.some((route: object) =>
        Object.entries(served).every(([key, value]) => route[key as never] === value),
      ),
    );
    await eventually('the laptop uses it', async () => {
      await laptop.cpn(['reconcile']);
      return (await laptop.exec(['wg', 'show', 'cpn0', 'allowed-ips'])).stdout.includes(inside);
    });
    expect(await call(laptop, address)).toBe('192.168.1.1');
    const { stdout } = await edge.cpn(['explain', '192.168.1.10'], { allowFailure: true });
    expect(stdout).toContain('reach it only as 10.201.1.10');
    expect(stdout).not.toContain(wider);
    await controlPlane.cpn(['network', 'update', 'office', '--yes', '--remove-route', wider]);
    await routed('10.201.1.0/24');
    await controlPlane.cpn(['network', 'update', 'office', '--yes', '--remove-route', inside]);
    await eventually('the laptop has a session', async () => (await laptop.ping(tunnel, patiently)).received === 1);
  });

  it.each([
    ['A', () => siteA as Site],
    ['B', () => siteB as Site],
  ])('end the connections of a map that goes or changes, of site %s and no other', async (name, find) => {
    const { edge, server, address } = find();
    const other = (name === 'A' ? siteB : siteA) as Site;
    const start = () => Promise.all([Flow.start(laptop, server, address), Flow.start(server, laptop, laptopAddress)]);
    const ended = async (flows: readonly Flow[]) => {
      for (const flow of flows) expect(await flow.arriving()).toBe(0);
      await Promise.all(flows.map((flow) => flow.stop()));
    };
    const map = `${address.replace(/10$/, '0/24')}=`;
    const untouched = await Flow.start(laptop, other.server, other.address);
    const mapped = await start();
    await edge.cpn(['set', '--drop-map', map.slice(0, -1)]);
    await ended(mapped);
    // The route is one of the box itself again, and leads to no such LAN.
    expect((await laptop.ping(address)).received).toBe(0);
    await edge.cpn(['set', '--map', `${map}${local}`]);
    const again = await start();
    await edge.cpn(['set', '--map', `${map}192.168.7.0/24`]);
    await ended(again);
    await edge.cpn(['set', '--map', `${map}${local}`]);
    const [inward, outward] = await start();
    expect(await inward?.arriving()).toBeGreaterThanOrEqual(9);
    expect(await outward?.arriving()).toBeGreaterThanOrEqual(9);
    expect(await plan(edge)).toEqual({ exitCode: 0, changes: [] });
    await Promise.all([inward?.stop(), outward?.stop()]);
    expect(await untouched.stop()).toBe(0);
  });

  it.each([
    ['goes', ['--drop-map', '10.201.1.0/24']],
    ['changes', ['--map', '10.201.1.0/24=192.168.7.0/24']],
  ])('end what the LAN alone still sends in a connection of a map that %s', async (_, change) => {
    const { edge, server, address } = siteA as Site;
    const port = 9000;
    const counting = `table inet sent { chain c { type filter hook output priority 0; udp sport ${port} counter; }; }`;
    await server.exec(['nft', '-f', '-'], { input: counting });
    const sender = `const socket = require('dgram').createSocket('udp4');
      socket.on('message', (_, { port, address }) => setInterval(() => socket.send('x', port, address), 20));
      socket.bind(${port}, () => console.log('open'));`;
    const receiver = `const socket = require('dgram').createSocket('udp4');
      socket.on('message', () => console.log('x'));
      socket.send('go', ${port}, '${address}');`;
    const source = server.spawn(['node', '-e', sender]);
    await source.waitForLine(/open/);
    const sink = laptop.spawn(['node', '-e', receiver]);
    const received = () => sink.output.stdout.split('x').length;
    const sent = async () =>
      Number(/packets (\d+)/.exec((await server.exec(['nft', 'list', 'table', 'inet', 'sent'])).stdout)?.[1]);
    const sendMore = async () => {
      const goal = (await sent()) + 10;
      await eventually('packets are sent', async () => (await sent()) >= goal);
    };
    await eventually('packets arrive', () => received() > 10);
    await edge.cpn(['set', ...change]);
    await sendMore();
    const before = received();
    await sendMore();
    expect(received()).toBe(before);
    await Promise.all([source.stop(), sink.stop()]);
    await server.exec(['nft', 'delete', 'table', 'inet', 'sent']);
    await edge.cpn(['set', '--map', mapOf(1)]);
  });

  it('resolve names by the mapped address of their server, and answers are not rewritten', async () => {
    const { server, address } = siteA as Site;
    const dns = await DnsServer.start(server, { 'db.corp.lan': ['192.168.1.10'] });
    const resolved = await startResolved(laptop);
    await controlPlane.cpn(['network', 'update', 'office', '--route-dns', `10.201.1.0/24=${address},corp.lan`]);
    await eventually('the route is in use again', async () => {
      await laptop.cpn(['reconcile']);
      expect((await resolved.resolvectl(['dns', 'cpn0'])).stdout.trim()).toMatch(/: 10\.201\.1\.10$/);
      return true;
    });
    expect(await resolved.query('db.corp.lan')).toEqual(['192.168.1.10']);
    const daemon = await startDaemon(laptop);
    await eventually('the daemon is the server', async () =>
      expect((await resolved.resolvectl(['dns', 'cpn0'])).stdout.trim()).toMatch(/:553$/),
    );
    await resolved.resolvectl(['flush-caches']);
    expect(await resolved.query('db.corp.lan')).toEqual(['192.168.1.10']);
    expect(await dns.countQuestions('db.corp.lan')).toBeGreaterThanOrEqual(2);
    await daemon.stop();
  });
});
