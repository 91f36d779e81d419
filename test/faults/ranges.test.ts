import { afterAll, beforeAll, expect, it } from 'vitest';
import { join, type Office, plan, startOffice, status } from '../e2e/office.ts';
import { joinHost } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import { openSession } from '../lab/ssh-session.ts';
import { FaultyProxy } from './faulty-proxy.ts';
import { addEdge, addHost, addMember, behind, edgeAddress } from './members.ts';
import { injecting } from './record.ts';
import { whilePinging } from './while-pinging.ts';

let office: Office;
let edge: Host;

beforeAll(async () => {
  office = await startOffice();
  edge = await addEdge(office);
});

afterAll(() => office?.lab.stop());

const networks = async (host: Host) => JSON.parse((await host.cpn(['status', '--json'])).stdout).networks;

it('40: of two networks that overlap the second one yields', () =>
  injecting(40, async (row) => {
    const { host } = await addMember(office, edge, 'in-two');
    const { cpn } = office.controlPlane;
    await cpn(['network', 'create', '--name', 'branch', '--cidr', '10.77.0.0/20', '--route', '192.168.50.0/24']);
    const losses = await whilePinging(host, edgeAddress, async () => {
      row.injected('a network within, and with a route of, the first');
      const branchEdge = await addHost(office, 'branch-edge');
      const flags = ['--type', 'connector', '--endpoint', `${branchEdge.address}:51820`, '--wait', '0'];
      await joinHost(office.controlPlane, branchEdge, { network: 'branch', flags });
      await joinHost(office.controlPlane, host, { network: 'branch', flags: ['--wait', '0'] });
      // Both gave the host the same address: the rules of the first one let in what the second one brings for it.
      await host.cpn(['reconcile']);
      const [first, second] = await networks(host);
      expect(first).toMatchObject({ drift: [], routes: [{ prefix: '192.168.50.0/24', state: 'active' }] });
      expect(first.warnings).toEqual([
        `${second.address}/32, a subnet of this host on cpn1, lies in the range of the network and stays local`,
      ]);
      expect(second.routes).toMatchObject([
        { prefix: '10.77.0.0/20', state: 'refused', reason: 'overlaps 10.77.0.0/24, which this host is in (cpn0)' },
        { prefix: '192.168.50.0/24', state: 'refused', reason: 'overlaps 192.168.50.0/24 of network office (cpn0)' },
      ]);
      row.detected();
      expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
    });
    row.lost(losses);
    expect(losses.lost).toBe(0);
  }));

it('41: a route over the control plane is refused, one over an SSH client leaves it out, and both stay reachable', () =>
  injecting(41, async (row) => {
    const { lab } = office;
    const home = await lab.addNat('home', { outside: '203.0.113.90/24', inside: '192.168.7.1/24' });
    const host = await home.addHost('homely', '192.168.7.2/24');
    const desk = await lab.addSegment('desk');
    await home.router.plug(desk, { address: '198.51.100.1/24' });
    await home.router.exec(['nft', 'add rule ip nat forward iifname eth2 accept']);
    const admin = await lab.addHost('admin', { on: desk, address: '198.51.100.5/24', gateway: '198.51.100.1' });
    const session = await openSession(admin, host);
    const proxy = await FaultyProxy.start(lab, office.controlPlane, 3);
    await join(behind(proxy, office), host, '--type', 'admin_device');
    const routes = ['203.0.113.0/28', '198.51.100.0/24', '192.168.51.0/24'];
    await proxy.inject({ kind: 'map', changes: { network: { routes } } });
    row.injected('203.0.113.0/28 and 198.51.100.0/24 in the map');
    await host.cpn(['reconcile']);
    expect((await status(host)).routes).toMatchObject([
      { prefix: '203.0.113.0/28', state: 'refused', reason: `covers the control plane (${proxy.host.address})` },
      { prefix: '198.51.100.0/24', state: 'active', reason: `${admin.address} stays outside: an SSH client` },
      { prefix: '192.168.51.0/24', state: 'active' },
    ]);
    row.detected();
    await session.type('still here');
    expect((await host.cpn(['reconcile'])).stderr).not.toContain('unreachable');
    expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
  }));

it('44: a route with host bits set is taken as the range that it means, once and for all', () =>
  injecting(44, async (row) => {
    const [host, proxy] = [
      await addHost(office, 'canonical'),
      await FaultyProxy.start(office.lab, office.controlPlane, 2),
    ];
    await join(behind(proxy, office), host, '--endpoint', `${host.address}:51820`);
    await proxy.inject({ kind: 'map', changes: { network: { routes: ['192.168.50.7/24', '10.9.8.7/16'] } } });
    row.injected('192.168.50.7/24 and 10.9.8.7/16 in the map');
    await host.cpn(['reconcile']);
    row.repaired();
    expect((await status(host)).routes).toMatchObject([
      { prefix: '192.168.50.0/24', state: 'active' },
      { prefix: '10.9.0.0/16', state: 'active' },
    ]);
    expect((await host.exec(['wg', 'show', 'cpn0', 'allowed-ips'])).stdout).toContain('10.9.0.0/16');
    expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
  }));
