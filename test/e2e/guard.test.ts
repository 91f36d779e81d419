import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { joinHost } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import { join, type Office, patiently, plan, startOffice, status } from './office.ts';

let office: Office;
let connector: Host;

beforeAll(async () => {
  office = await startOffice();
  connector = await office.lab.addHost('connector', { address: '203.0.113.11/24' });
  await join(office, connector, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
});

afterAll(() => office?.lab.stop());

describe('a route that would harm the host', () => {
  it.each<[string, string, string, (host: Host) => Promise<unknown>]>([
    [
      'because the host is in it',
      'neighbour',
      'overlaps 192.168.50.0/25, which this host is in (eth1)',
      async (host) => host.plug(await office.lab.addSegment('own-lan'), { address: '192.168.50.7/25' }),
    ],
    [
      'because somebody else routes it',
      'router',
      'leads to eth0 on this host already',
      (host) => host.exec(['ip', 'route', 'add', '192.168.50.0/24', 'via', '203.0.113.1']),
    ],
  ])('is refused %s, with the reason, and everything else works', async (_why, name, reason, prepare) => {
    const host = await office.lab.addHost(name, { address: `203.0.113.${20 + name.length}/24` });
    await prepare(host);
    const routes = async () => (await host.exec(['ip', 'route', 'show', '192.168.50.0/24'])).stdout;
    const before = await routes();
    await joinHost(office.controlPlane, host, {
      network: 'office',
      flags: ['--type', 'admin_device'],
      before: [connector],
    });
    expect((await status(host)).routes).toEqual([
      { prefix: '192.168.50.0/24', via: 'connector', state: 'refused', reason },
    ]);
    expect(await routes()).toBe(before);
    expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
    expect(await host.ping('10.77.0.1', patiently)).toMatchObject({ received: 1 });
  });

  it('is let through by --allow-route', async () => {
    const host = await office.lab.addHost('bold', { address: '203.0.113.77/24' });
    await host.plug(await office.lab.addSegment('other-lan'), { address: '192.168.50.7/25' });
    await join(office, host, '--type', 'admin_device', '--allow-route', '192.168.50.0/24');
    expect((await status(host)).routes).toMatchObject([{ prefix: '192.168.50.0/24', state: 'active' }]);
  });
});
