import { readFile, stat } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Joined, joinHost } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import { type Office, patiently, plan, startOffice, status } from './office.ts';

/** A connector with a LAN behind it, an origin, and a laptop behind NAT, all in one network. */
let office: Office;
let connector: Host;
let origin: Host;
let laptop: Host;
let printer: Host;
const joined = new Map<Host, Joined>();

beforeAll(async () => {
  office = await startOffice();
  const { lab } = office;
  connector = await lab.addHost('connector', { address: '203.0.113.11/24' });
  origin = await lab.addHost('origin', { address: '203.0.113.22/24' });
  laptop = await (await lab.addNat('home', { outside: '203.0.113.33/24', inside: '10.0.0.1/24' })).addHost(
    'laptop',
    '10.0.0.2/24',
  );
  printer = await (await lab.addLan(connector, '192.168.50.1/24')).addHost('printer', '192.168.50.10/24');
  await join(connector, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
  await join(origin, '--type', 'origin', '--endpoint', '203.0.113.22:51820');
  await join(laptop, '--type', 'admin_device');
}, 90_000);

afterAll(() => office?.lab.stop());

async function join(host: Host, ...flags: string[]): Promise<void> {
  const before = [...joined.keys()];
  joined.set(host, await joinHost(office.controlPlane, host, { network: 'office', flags, before }));
}

const report = (host: Host): Joined => joined.get(host) as Joined;

describe('three hosts that joined a network', () => {
  it('were answered by a peer, where there was one to dial', () => {
    expect([...joined.values()].map(({ handshake }) => handshake)).toEqual([false, true, true]);
  });

  it('have addresses in the order in which they joined', () => {
    expect([...joined.values()].map(({ address }) => address)).toEqual(['10.77.0.1', '10.77.0.2', '10.77.0.3']);
    expect(report(origin)).toMatchObject({
      interface: 'cpn0',
      network: { id: 1, name: 'office' },
      peer: { id: 2, name: 'origin' },
    });
  });

  it('reach each other through the tunnels, in both directions', async () => {
    for (const from of joined.keys()) {
      for (const [to, { address }] of joined) {
        if (to !== from)
          expect({ from: from.name, to: to.name, ...(await from.ping(address, patiently)) }).toMatchObject({
            received: 1,
          });
      }
    }
  });

  it('reach the LAN behind the connector, which has no route back to them', async () => {
    expect(await origin.ping('192.168.50.10', patiently)).toMatchObject({ received: 1 });
    expect(await laptop.ping('192.168.50.10', patiently)).toMatchObject({ received: 1 });
    expect((await printer.exec(['ip', '-j', 'route'])).stdout).not.toContain('10.77.0');
  });

  it('get TCP through with segments that fit the tunnel', async () => {
    const server = printer.spawn(['node', '-e', serveOneSegmentSize]);
    await server.waitForLine(/listening/);
    await laptop.exec(['node', '-e', "require('net').connect(7000,'192.168.50.10').on('data',()=>process.exit(0))"]);
    const [, size] = await server.waitForLine(/mss (\d+)/);
    // 1,420 bytes through the tunnel, less the headers of IPv4 and TCP.
    expect(Number(size)).toBeLessThanOrEqual(1380);
  });

  it('have nothing left to change', async () => {
    for (const host of joined.keys()) expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
  });

  it('report their state as scripts rely on it', async () => {
    const seen = await status(laptop);
    expect(seen).toMatchObject({
      network: { id: 1, name: 'office' },
      interface: 'cpn0',
      state: 'up',
      address: '10.77.0.3',
      public_key: report(laptop).public_key,
      mtu: 1420,
      routes: [{ prefix: '192.168.50.0/24', via: 'connector', state: 'active' }],
      drift: [],
      sync: { mode: 'poll' },
    });
    expect(seen.peers).toMatchObject([
      {
        id: 1,
        name: 'connector',
        type: 'connector',
        public_key: report(connector).public_key,
        address: '10.77.0.1',
        endpoint: '203.0.113.11:51820',
        allowed_ips: ['10.77.0.0/24', '10.77.0.1/32', '192.168.50.0/24'],
        state: 'connected',
      },
      { id: 2, name: 'origin', allowed_ips: ['10.77.0.2/32'], state: 'connected' },
    ]);
    expect(Number.isNaN(Date.parse(seen.peers[0].latest_handshake))).toBe(false);
    expect(seen.peers[0].rx_bytes).toBeGreaterThan(0);
  });

  it('report it without the control plane', async () => {
    const { exitCode } = await laptop.cpn(['status', '--check'], { env: { CPN_API_URL: 'http://127.0.0.1:1' } });
    expect(exitCode).toBe(0);
  });

  it('keep a private key whose public half wg derives too, in files that only root reads', async () => {
    for (const [host, { public_key }] of joined) {
      const config = await readFile(path(host.configDir, 'cpn0.conf'), 'utf8');
      const private64 = /^PrivateKey = (.*)$/m.exec(config)?.[1] ?? '';
      expect((await host.exec(['wg', 'pubkey'], { input: private64 })).stdout.trim()).toBe(public_key);
      for (const file of [path(host.configDir, 'cpn0.conf'), path(host.stateDir, 'cpn0.json')]) {
        expect(((await stat(file)).mode & 0o777).toString(8)).toBe('600');
      }
    }
  });

  it('write advertised routes and literal endpoints into the wg-quick file, and no names', async () => {
    const config = await readFile(path(laptop.configDir, 'cpn0.conf'), 'utf8');
    expect(config).toContain(
      'AllowedIPs = 10.77.0.0/24, 10.77.0.1/32, 192.168.50.0/24\nEndpoint = 203.0.113.11:51820\nPersistentKeepalive = 25',
    );
    expect(config).not.toMatch(/connector|origin|laptop|Post|Pre(Up|Down)/);
  });

  it('mark the objects they made', async () => {
    const [link] = JSON.parse((await connector.exec(['ip', '-j', 'link', 'show', 'cpn0'])).stdout);
    expect(link.ifalias).toBe('cpn:1');
    const [route] = JSON.parse(
      (await laptop.exec(['ip', '-j', 'route', 'show', 'table', '8350', '192.168.50.0/24'])).stdout,
    );
    expect(route).toMatchObject({ dev: 'cpn0', protocol: '157' });
    expect((await connector.exec(['nft', 'list', 'tables'])).stdout.trim()).toBe('table inet cpn_cpn0');
  });
});

const serveOneSegmentSize = `
require('net').createServer((socket) => {
  socket.end('hello');
  const [, mss] = /mss:(\\d+)/.exec(require('child_process').execFileSync('ss', ['-tinH', 'sport = :7000'], { encoding: 'utf8' })) ?? [];
  console.log('mss ' + mss);
}).listen(7000, () => console.log('listening'));
`;
