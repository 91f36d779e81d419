import { writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { dialSession, type SshSession, serveSessions } from '../lab/ssh-session.ts';
import { join, type Office, patiently, plan, startOffice, status } from './office.ts';

/**
 * The guard protects what is outside the tunnel only: it ignores SSH sessions to an origin, to a connector and into
 * its LAN, and resolvers in the network and behind a connector.
 */
let office: Office;
/** The connector, and in its LAN a server that reaches the network, and a printer without a route out of its LAN. */
let dc: Host;
let server: Host;
let printer: Host;
let web: Host;
let laptop: Host;
const daemons = new Map<Host, Daemon>();

const [dcAddress, webAddress] = ['10.77.0.1', '10.77.0.2'];
const [dcInLan, printerAddress, serverAddress] = ['192.168.50.1', '192.168.50.10', '192.168.50.20'];
const lan = '192.168.50.0/24';

beforeAll(async () => {
  office = await startOffice();
  const { lab } = office;
  dc = await lab.addHost('dc', { address: '203.0.113.11/24' });
  const segment = await lab.addLan(dc, `${dcInLan}/24`);
  server = await segment.addHost('server', `${serverAddress}/24`, { routed: true });
  printer = await segment.addHost('printer', `${printerAddress}/24`);
  web = await lab.addHost('web', { address: '203.0.113.12/24' });
  const home = await lab.addNat('home', { outside: '203.0.113.33/24', inside: '10.0.0.1/24' });
  laptop = await home.addHost('laptop', '10.0.0.10/24');
  for (const [host, ...flags] of [
    [dc, '--type', 'connector', '--endpoint', '203.0.113.11:51820'],
    [web, '--endpoint', '203.0.113.12:51820'],
    [laptop, '--type', 'admin_device'],
  ] as const) {
    await join(office, host, ...flags);
  }
  await useResolver(web, dcAddress);
  await useResolver(laptop, printerAddress);
  await Promise.all([dc, web, laptop, server, printer].map(serveSessions));
  await Promise.all([dc, web, laptop].map(keep));
}, 90_000);

afterAll(() => office?.lab.stop());

const useResolver = (host: Host, address: string) =>
  writeFile(path(host.etcDir, 'resolv.conf'), `nameserver ${address}\n`);

async function keep(host: Host): Promise<void> {
  const daemon = await startDaemon(host, '--interval', '1', '--metrics', '127.0.0.1:9586');
  await daemon.awaitLog('the metrics', ({ msg }) => msg === 'serving metrics');
  daemons.set(host, daemon);
}

/** How many passes the daemon of a host made, by their result. */
async function countPasses(host: Host): Promise<Record<string, number>> {
  const scrape =
    "exec 3<>/dev/tcp/127.0.0.1/9586; printf 'GET /metrics HTTP/1.0\\r\\nHost: 127.0.0.1\\r\\n\\r\\n' >&3; cat <&3";
  const { stdout } = await host.exec(['bash', '-c', scrape]);
  const samples = stdout.matchAll(/^cpn_passes_total\{.*outcome="(\w+)".*\} (\d+)$/gm);
  return Object.fromEntries([...samples].map(([, outcome = '', count]) => [outcome, Number(count)]));
}

/** Allowed IPs, routes and address of a host, in a fixed order. */
async function readTunnel(host: Host): Promise<string[]> {
  const { stdout } = await host.exec(['sh', '-c', 'wg show cpn0 allowed-ips; ip route; ip -o -4 address show cpn0']);
  const lines = stdout.split('\n').map((line) => line.replace(/^\d+: /, ''));
  return lines.map((line) => line.split(/\s+/).toSorted().join(' ')).toSorted();
}

/** Checks that three more passes change nothing on a host. */
async function expectSteady(...hosts: Host[]): Promise<void> {
  await Promise.all(
    hosts.map(async (host) => {
      const [before, counted] = [await readTunnel(host), await countPasses(host)];
      const passes = await eventually(`three passes over ${host.name}`, async () => {
        const now = await countPasses(host);
        return (now.steady ?? 0) >= (counted.steady ?? 0) + 3 && now;
      });
      expect(passes).toEqual({ ...counted, steady: passes.steady });
      expect(await readTunnel(host)).toEqual(before);
      expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
      expect((await status(host)).routes).toMatchObject([{ prefix: lan, state: 'active' }]);
    }),
  );
}

describe('SSH through the tunnel', () => {
  const open: SshSession[] = [];
  const expectAlive = () =>
    Promise.all(open.map((each, index) => each.type(`still here ${index} ${performance.now()}`)));

  it('goes on, to an origin, to a connector and its LAN, and from the LAN, with masquerade', async () => {
    for (const [from, to] of [
      [laptop, webAddress],
      [dc, webAddress],
    ] as const) {
      await eventually('they meet', async () => (await from.ping(to, patiently)).received === 1);
    }
    for (const [from, to] of [
      [laptop, webAddress],
      [laptop, dcAddress],
      [web, dcInLan],
      [laptop, printerAddress],
      [server, webAddress],
      [web, '10.77.0.3'],
    ] as const) {
      open.push(await dialSession(from, to));
    }
    await expectSteady(dc, web, laptop);
    await expectAlive();
  });

  it('goes on without masquerade, so that the LAN’s own addresses are visible', async () => {
    await dc.cpn(['set', '--no-masquerade']);
    open.splice(0);
    for (const [from, to] of [
      [laptop, serverAddress],
      [server, webAddress],
      [server, '10.77.0.3'],
    ] as const) {
      open.push(await dialSession(from, to));
    }
    await expectSteady(dc, web, laptop);
    await expectAlive();
  });

  it.each(['leave', 'drain --down'])('is named by "cpn %s", which changes nothing without --yes', async (command) => {
    const { exitCode, stderr } = await dc.cpn(command.split(' '), { allowFailure: true });
    const named = /SSH sessions from .*10\.77\.0\.[23]\b.* go through the tunnel, and end\..* nothing was done/;
    expect([exitCode, stderr]).toEqual([2, expect.stringMatching(named)]);
    expect((await status(dc)).routes).toMatchObject([{ prefix: lan, state: 'active' }]);
  });

  const question =
    /^cpn: Take cpn0 down\? SSH sessions from .*192\.168\.50\.20.* go through the tunnel, and end\. There/;

  it('does not keep a tunnel from coming up again, and neither do resolvers that are reached through it', async () => {
    const again = [web, laptop].map(async (host) => {
      const before = await readTunnel(host);
      await daemons.get(host)?.stop();
      const refused = await host.cpn(['down'], { allowFailure: true });
      expect([refused.exitCode, refused.stderr]).toEqual([2, expect.stringMatching(question)]);
      expect(await readTunnel(host)).toEqual(before);
      await host.cpn(['down', '--yes']);
      expect((await host.exec(['ip', 'route'])).stdout).not.toContain('cpn0');
      await host.cpn(['up']);
      expect(await readTunnel(host)).toEqual(before);
      await keep(host);
    });
    await Promise.all(again);
    // A peer that stayed up still uses the previous session's keys, until the host sends.
    for (const host of [web, laptop]) expect(await host.ping(dcAddress, patiently)).toMatchObject({ received: 1 });
    await expectSteady(web, laptop);
    expect((await laptop.exec(['ip', 'route', 'get', printerAddress])).stdout).toContain('dev cpn0');
    await expectAlive();
  });
});

it('an SSH session from outside is kept, though a file names a route that covers its source', async () => {
  const { lab } = office;
  await daemons.get(web)?.stop();
  await web.cpn(['down', '--yes']);
  const admin = await lab.addHost('admin', { address: '203.0.113.99/24' });
  await admin.exec(['ip', 'address', 'add', '192.168.50.7/32', 'dev', 'lo']);
  await web.exec(['ip', 'route', 'add', '192.168.0.0/16', 'via', '203.0.113.99']);
  const dial = `process.stdin.pipe(require('net').connect({ port: 22, host: '203.0.113.12', localAddress: '192.168.50.7' })).pipe(process.stdout)`;
  const client = admin.spawn(['node', '-e', dial], { holdInput: true });
  client.writeInput('hello\n');
  await client.waitForLine(/hello/);
  await web.cpn(['up']);
  const [route] = (await status(web)).routes;
  expect(route).toMatchObject({ prefix: lan, state: 'refused', reason: 'covers an SSH client (192.168.50.7)' });
  client.writeInput('still here\n');
  await client.waitForLine(/still here/);
  expect(await web.ping(dcAddress, patiently)).toMatchObject({ received: 1 });
});

it('a session that lingers from before does not keep a host that left from joining again', async () => {
  await eventually('they meet', async () => (await laptop.ping(dcAddress, patiently)).received === 1);
  await dialSession(dc, '10.77.0.3');
  await daemons.get(laptop)?.stop();
  await laptop.cpn(['leave', '--yes']);
  const sockets = await laptop.exec(['ss', '-Htn', 'state', 'established']);
  expect(sockets.stdout).toMatch(/10\.77\.0\.3\]?:22 /);
  // For a host that never was in the network, a resolver behind a connector is outside.
  await useResolver(laptop, '10.0.0.1');
  const { address } = await join(office, laptop, '--type', 'admin_device');
  expect(address).not.toBe('10.77.0.3');
  expect((await status(laptop)).routes).toMatchObject([{ prefix: lan, state: 'active' }]);
  expect((await laptop.exec(['ip', 'route'])).stdout).toContain('10.77.0.0/24 dev cpn0');
  expect(await laptop.ping(dcAddress, patiently)).toMatchObject({ received: 1 });
});
