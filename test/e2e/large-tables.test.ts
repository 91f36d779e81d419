import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { loadRoutes, manyRoutes } from '../lab/routing-table.ts';
import { join, type Office, patiently, plan, startOffice, status } from './office.ts';

/**
 * Two hosts with more routes than are read at once: a router that has them in the main table, and a host that has them in table 100, to
 * which no rule leads.
 */
let office: Office;
let router: Host;
let other: Host;
let daemon: Daemon;

const lan = '192.168.50.0/24';
const printer = '192.168.50.10';
const routeTo = async (host: Host, address: string) => (await host.exec(['ip', 'route', 'get', address])).stdout;
const [ip, change] = [
  (host: Host, ...words: string[]) => host.exec(['ip', ...words]),
  (host: Host, text: string) => host.exec(['ip', 'route', ...text.split(' ')]),
];

beforeAll(async () => {
  office = await startOffice();
  const edge = await office.lab.addHost('edge', { address: '203.0.113.11/24' });
  await join(office, edge, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
  await (await office.lab.addLan(edge, '192.168.50.1/24')).addHost('printer', `${printer}/24`);
  router = await office.lab.addHost('router', { address: '203.0.113.12/24' });
  other = await office.lab.addHost('other', { address: '203.0.113.13/24' });
  await loadRoutes(router, manyRoutes, '203.0.113.1');
  await loadRoutes(other, manyRoutes, '203.0.113.1', '100');
  await join(office, router, '--endpoint', '203.0.113.12:51820');
  await join(office, other, '--endpoint', '203.0.113.13:51820');
  await edge.cpn(['reconcile']);
  daemon = await startDaemon(router, '--interval', '5');
}, 120_000);

afterAll(async () => {
  await daemon?.stop();
  await office?.lab.stop();
});

describe('a host whose routing table is too large to be read', () => {
  it.each(['main', '100'])('is up and has no drift with the routes in table %s', async (table) => {
    const host = table === 'main' ? router : other;
    await eventually('it has the newest map', async () => (await plan(host)).changes.length === 0);
    expect(await status(host)).toMatchObject({ state: 'up', drift: [], routes: [{ prefix: lan, state: 'active' }] });
    expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
    expect((await host.ping(printer, patiently)).received).toBe(1);
  });

  it('gets a route of its own back that another program removes', async () => {
    await change(router, `del ${lan} table 8350`);
    await eventually('the route is back', async () => (await routeTo(router, printer)).includes('dev cpn0'), {
      timeoutMs: 20_000,
    });
  });

  it('gets its MTU back, in one go', async () => {
    const repairs = () => daemon.log.filter(({ msg }) => msg === 'drift repaired').length;
    const before = repairs();
    await router.exec(['ip', 'link', 'set', 'cpn0', 'mtu', '1300']);
    await eventually('the MTU is back', async () => (await status(router)).mtu === 1420, { timeoutMs: 20_000 });
    await eventually('the repair is logged', async () => repairs() > before);
    expect(await plan(router)).toEqual({ exitCode: 0, changes: [] });
    expect(repairs()).toBe(before + 1);
  });

  it.each(['static', 'bgp'])('reports a more specific %s route of another program', async (protocol) => {
    await change(router, `add 192.168.50.128/25 via 203.0.113.1 proto ${protocol}`);
    try {
      const seen = await status(router);
      expect(seen).toMatchObject({ state: 'degraded', routes: [{ reason: expect.stringContaining('192.168.50.') }] });
      const explained = await router.cpn(['explain', '192.168.50.200'], { allowFailure: true });
      expect(explained.stdout).toContain('192.168.50.128/25');
    } finally {
      await change(router, 'del 192.168.50.128/25');
    }
    expect(await status(router)).toMatchObject({ state: 'up' });
  });

  it('keeps its route where a routing daemon has a wider one, and does not move it to and fro', async () => {
    await change(router, 'add 192.168.0.0/16 via 203.0.113.1 proto bgp');
    try {
      await eventually('the route comes first', async () => (await routeTo(router, printer)).includes('dev cpn0'), {
        timeoutMs: 20_000,
      });
      await eventually('the host is settled', async () => (await plan(router)).changes.length === 0);
      expect(await plan(router)).toEqual({ exitCode: 0, changes: [] });
      expect(await status(router)).toMatchObject({ state: 'up', drift: [] });
      expect((await router.ping(printer, patiently)).received).toBe(1);
    } finally {
      await change(router, 'del 192.168.0.0/16');
    }
  });

  it('refuses a route that the host has itself, whichever program made it', async () => {
    await change(other, `add ${lan} via 203.0.113.1 proto bgp`);
    try {
      expect(await status(other)).toMatchObject({
        routes: [{ prefix: lan, state: 'refused', reason: 'is already routed to eth0 on this host' }],
      });
    } finally {
      await change(other, `del ${lan} via 203.0.113.1`);
    }
  });

  it('finds routes into its interface in any table', async () => {
    await ip(other, 'route', 'add', '198.51.100.0/24', 'dev', 'cpn0', 'table', '100');
    try {
      expect((await status(other)).foreign_routes).toMatchObject([{ prefix: '198.51.100.0/24', table: '100' }]);
    } finally {
      await ip(other, 'route', 'del', '198.51.100.0/24', 'dev', 'cpn0', 'table', '100');
    }
  });

  it('leaves nothing behind', async () => {
    await other.cpn(['leave', '--yes', '--verify']);
    expect((await other.exec(['ip', 'rule', 'show'])).stdout).not.toContain('8350');
  });
});
