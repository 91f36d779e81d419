import { readFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { join, type Office, patiently, plan, startOffice, status } from './office.ts';

let office: Office;
let connector: Host;
let laptop: Host;

/** The connector's address in the LAN of the office, and a host in a café's LAN of the same prefix. */
const [inOffice, inCafe] = ['192.168.50.1', '192.168.50.66'];
const inLaptop = '192.168.50.7';
const route = '192.168.50.0/24';
/** The table of the laptop's accepted routes, and the lines that a plain `wg-quick up` after a boot leaves to cpn. */
const table = '8350';
const moved = (from: string, to: string, reason: string) => ({
  action: 'update',
  kind: 'route',
  target: route,
  before: { table: from },
  after: { table: to },
  reason,
});
const rules = ['31470: from all lookup main suppress_prefixlength 0', `31471: from all lookup ${table}`].map((target) =>
  expect.objectContaining({ action: 'add', kind: 'rule', target }),
);

beforeAll(async () => {
  office = await startOffice();
  connector = await office.lab.addHost('connector', { address: '203.0.113.11/24' });
  laptop = await office.lab.addHost('laptop', { address: '203.0.113.33/24' });
  await office.lab.addLan(connector, `${inOffice}/24`);
  const cafe = await office.lab.addSegment('cafe');
  await office.lab.addHost('till', { on: cafe, address: `${inCafe}/24` });
  await laptop.plug(cafe, { address: [] });
  await join(office, connector, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
  await join(office, laptop, '--type', 'admin_device');
  await connector.cpn(['reconcile']);
}, 60_000);

afterAll(() => office?.lab.stop());

describe('the wg-quick file', () => {
  it('brought up by plain wg-quick gives a state in which there is nothing to change but the table of accepted routes and the forwarding of a connector', async () => {
    for (const host of [connector, laptop]) await host.exec(['ip', 'link', 'del', 'cpn0']);
    for (const host of [connector, laptop]) {
      expect((await plan(host)).exitCode).toBe(3);
      await host.exec(['sh', '-c', 'for each in 31470 31471; do ip rule delete priority $each; done'], {
        allowFailure: true,
      });
      await host.exec(['wg-quick', 'up', 'cpn0']);
    }
    expect((await plan(laptop)).changes).toEqual([moved('main', table, 'a local network comes first'), ...rules]);
    const forwarding = { kind: 'sysctl', target: 'net.ipv4.conf.cpn0.forwarding', after: '1' };
    expect((await plan(connector)).changes).toEqual([expect.objectContaining(forwarding)]);
    expect(await laptop.ping(inOffice, patiently)).toMatchObject({ received: 1 });
    await laptop.cpn(['reconcile']);
    expect(await plan(laptop)).toEqual({ exitCode: 0, changes: [] });
  });

  it('is what wg itself reads out of the interface', async () => {
    const stripped = (await laptop.exec(['wg-quick', 'strip', 'cpn0'])).stdout;
    const shown = (await laptop.exec(['wg', 'showconf', 'cpn0'])).stdout;
    const facts = (text: string) =>
      text
        .split('\n')
        .filter((line) => /^(PrivateKey|PublicKey|AllowedIPs|Endpoint|PersistentKeepalive)/.test(line))
        .map(sortList)
        .sort();
    expect(facts(stripped)).toEqual(facts(shown));
  });

  it('that wg-quick brought up is taken down by cpn', async () => {
    await laptop.cpn(['down']);
    await laptop.exec(['wg-quick', 'up', 'cpn0']);
    await laptop.cpn(['down']);
    expect((await laptop.exec(['ip', '-j', 'link'])).stdout).not.toContain('cpn0');
    await laptop.cpn(['up']);
    expect(await plan(laptop)).toEqual({ exitCode: 0, changes: [] });
  });

  it('is written again when it was changed', async () => {
    const file = path(laptop.configDir, 'cpn0.conf');
    const before = await readFile(file, 'utf8');
    await laptop.exec(['sh', '-c', `echo 'PostUp = touch /tmp/cpn-owned' >>${file}`]);
    expect(await plan(laptop)).toMatchObject({
      exitCode: 3,
      changes: [{ action: 'update', kind: 'file', target: file }],
    });
    await laptop.cpn(['reconcile']);
    expect(await readFile(file, 'utf8')).toBe(before);
  });
});

describe('a local network with the prefix of an accepted route, or a wider one', () => {
  const reaches = async (address: string) => (await laptop.ping(address, patiently)).received === 1;

  it.each([
    ['the kernel', `ip address add ${inLaptop}/24 dev eth1`],
    ['the kernel, wider', `ip address add ${inLaptop}/16 dev eth1`],
    [
      'NetworkManager',
      `ip address add ${inLaptop}/24 dev eth1 noprefixroute; ip route add ${route} dev eth1 src ${inLaptop} metric 600`,
    ],
  ])('wins by the route of %s before cpn has looked, and the tunnel has it again afterwards', async (_whose, come) => {
    expect(await reaches(inOffice)).toBe(true);
    await laptop.exec(['sh', '-ec', come]);
    expect(await reaches(inCafe)).toBe(true);
    await laptop.exec(['ip', 'address', 'flush', 'dev', 'eth1']);
    expect(await reaches(inOffice)).toBe(true);
  });

  it('is only a local route: with a wider one by a gateway, or rules of another VPN, the route is in the main table', async () => {
    const shown = async () => (await laptop.exec(['ip', 'route', 'show', 'table', 'all', route])).stdout.trim();
    for (const [come, go] of [
      ['ip route add 192.168.0.0/16 via 203.0.113.1', 'ip route delete 192.168.0.0/16'],
      ['ip route add blackhole 192.168.0.0/16', 'ip route delete blackhole 192.168.0.0/16'],
      ['ip rule add lookup 100 priority 5000', 'ip rule delete priority 5000'],
    ] as const) {
      await laptop.exec(['sh', '-c', come]);
      const reason = 'another rule or route would come before its table';
      expect((await plan(laptop)).changes[0]).toEqual(moved(table, 'main', reason));
      await laptop.cpn(['reconcile']);
      expect(await shown()).toMatch(/^192.168.50.0\/24 dev cpn0 proto 157 scope link metric 10000$/);
      expect(await plan(laptop)).toEqual({ exitCode: 0, changes: [] });
      expect(await reaches(inOffice)).toBe(true);
      await laptop.exec(['sh', '-c', go]);
      await laptop.cpn(['reconcile']);
      expect(await shown()).toContain('dev cpn0 table 8350');
      expect(await reaches(inOffice)).toBe(true);
    }
  });

  it('keeps the route away once the daemon observes it, and so does a wider one; then the route comes back', async () => {
    await laptop.exec(['ip', 'address', 'add', `${inLaptop}/24`, 'dev', 'eth1']);
    await using daemon = await startDaemon(laptop);
    const becomes = (what: string) =>
      eventually(`the route is ${what}`, async () => {
        const { state, reason } = (await status(laptop)).routes[0];
        return [state, reason].includes(what);
      });
    await becomes('overlaps 192.168.50.0/24, which this host is in (eth1)');
    await laptop.exec(['sh', '-ec', `ip address flush dev eth1; ip address add ${inLaptop}/16 dev eth1`]);
    await becomes('overlaps 192.168.0.0/16, which this host is in (eth1)');
    await eventually('the café answers', () => reaches(inCafe));
    await laptop.exec(['ip', 'address', 'flush', 'dev', 'eth1']);
    await becomes('active');
    await eventually('the office answers', () => reaches(inOffice));
    await daemon.stop();
  });
});

const sortList = (line: string) => line.replace(/(?<== ).*/, (values) => values.split(', ').sort().join(', '));
