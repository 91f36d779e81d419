import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { joinHost, makeKey } from '../lab/control-plane.ts';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Owner } from '../lab/owner.ts';
import { type Office, patiently, plan, startOffice } from './office.ts';

/**
 * Two networks with the route 192.168.50.0/24, of which the second one's range holds that of the first: the office, 10.77.0.8/29,
 * and the branch, 10.77.0.0/24, which gives its addresses in order. In the branch a laptop is met through its connector.
 */
let office: Office;
let owner: Owner;
let branch: number;
let host: Host;

const sharedRoute = '192.168.50.0/24';
const branchRange = '10.77.0.0/24';
const officeRange = '10.77.0.8/29';
const officeEdge = '10.77.0.9';
const ownAddress = '10.77.0.10';
const branchEdge = '10.77.0.1';
const branchLaptop = '10.77.0.2';
/** The host's address in the branch, once it has one: the office has not assigned it yet. */
const secondAddress = '10.77.0.12';
const [officePrinter, branchPrinter, otherPrinter] = ['192.168.50.10', '192.168.50.11', '192.168.60.11'];

beforeAll(async () => {
  office = await startOffice({ cidr: officeRange });
  const { lab, controlPlane } = office;
  owner = new Owner(controlPlane);
  branch = await owner.createNetwork('branch', branchRange, [sharedRoute, '192.168.60.0/24']);
  const [first, second] = [await addEdge('office', 11, officePrinter), await addEdge('branch', 12, branchPrinter)];
  await (await lab.addLan(second, '192.168.60.1/24')).addHost('other-printer', `${otherPrinter}/24`);
  const laptop = await lab.addHost('branch-laptop', { address: '203.0.113.13/24' });
  await joinHost(controlPlane, laptop, { network: 'branch', before: [second] });
  host = await lab.addHost('in-two', { address: '203.0.113.14/24' });
  expect(await joinHost(controlPlane, host, { network: 'office', before: [first] })).toMatchObject({
    address: ownAddress,
    interface: 'cpn0',
  });
}, 90_000);

afterAll(() => office?.lab.stop());

async function addEdge(network: string, number: number, printer: string): Promise<Host> {
  const edge = await office.lab.addHost(`${network}-edge`, { address: `203.0.113.${number}/24` });
  const flags = ['--type', 'connector', '--endpoint', `${edge.address}:51820`, '--wait', '0'];
  await joinHost(office.controlPlane, edge, { network, flags });
  const lan = await office.lab.addLan(edge, '192.168.50.1/24');
  await lan.addHost(`${network}-printer`, `${printer}/24`);
  return edge;
}

/** Gives the branch's next addresses to strangers, up to and with the one that ends in this number. */
async function fillBranch(last: number): Promise<void> {
  for (;;) {
    const id = await owner.addStranger(branch, 'stranger', '203.0.113.250:51820');
    const { address } = (await owner.listPeers(branch)).find((peer) => peer.id === id) ?? {};
    if (address === `10.77.0.${last}`) return;
  }
}

const networks = async () => JSON.parse((await host.cpn(['status', '--json'])).stdout).networks;
const reaches = async (address: string) => (await host.ping(address, patiently)).received === 1;
const routeTo = async (prefix: string) => (await host.exec(['ip', 'route', 'show', 'table', 'all', prefix])).stdout;

/** Both networks work, and the second one yields where they overlap. */
async function expectBoth(): Promise<void> {
  const [first, second] = await networks();
  expect(first).toMatchObject({ drift: [], routes: [{ prefix: sharedRoute, via: 'office-edge', state: 'active' }] });
  expect(second).toMatchObject({
    address: secondAddress,
    drift: [],
    routes: [
      { prefix: branchRange, state: 'refused', reason: `overlaps ${officeRange}, which this host is in (cpn0)` },
      { prefix: sharedRoute, state: 'refused', reason: `overlaps ${sharedRoute} of network office (cpn0)` },
      { prefix: '192.168.60.0/24', via: 'branch-edge', state: 'active' },
    ],
  });
  expect(await routeTo(sharedRoute)).toMatch(/dev cpn0/);
  const allowed = (await host.exec(['wg', 'show', 'cpn1', 'allowed-ips'])).stdout;
  expect(allowed).not.toMatch(/10\.77\.0\.(9|10|11|12)\/|192\.168\.50\.|10\.77\.0\.0\//);
  for (const there of [officeEdge, officePrinter, branchEdge, branchLaptop, otherPrinter]) {
    expect([there, await reaches(there)]).toEqual([there, true]);
  }
  expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
}

describe('a host in two networks that overlap', () => {
  it('does not join the second one with the address of a peer of the first, and nothing stays', async () => {
    await fillBranch(8);
    const snapshot = async () => ({
      state: (await host.state()).replace(/lock\.pid.*/, ''),
      peers: await owner.listPeers(branch),
    });
    const before = await snapshot();
    const key = await makeKey(office.controlPlane, 'branch', 'refused');
    const joining = await host.cpn(['join', '-', ...office.api, '--wait', '0'], { input: key, allowFailure: true });
    expect(joining.stderr).toContain(
      `network branch gave this host ${officeEdge}, which is the address of peer office-edge of network office (cpn0), and would hide it; join again with another key for another address, or "cpn leave cpn0" first`,
    );
    expect(joining.exitCode).toBe(2);
    expect(await snapshot()).toEqual(before);
    expect(await reaches(officeEdge)).toBe(true);
  });

  it('joins it with an address of its own within the range of the first, and both work', async () => {
    await fillBranch(11);
    expect(await joinHost(office.controlPlane, host, { network: 'branch' })).toMatchObject({
      address: secondAddress,
      interface: 'cpn1',
    });
    await office.lab.hosts.get('branch-edge')?.cpn(['reconcile']);
    expect((await host.exec(['ip', '-br', '-4', 'address', 'show', 'cpn1'])).stdout).toContain(`${secondAddress}/32`);
    await expectBoth();
  });

  it.each([
    ['office', 'branch'],
    ['branch', 'office'],
  ])('has both, if it is %s that is passed over first', async (...order) => {
    for (const network of order) {
      const { stdout } = await host.cpn(['reconcile', network, '--json']);
      expect(JSON.parse(stdout).networks).toMatchObject([{ changes: [] }]);
    }
    for (const link of ['cpn0', 'cpn1']) await host.exec(['ip', 'link', 'delete', link]);
    for (const network of order) await host.cpn(['reconcile', network]);
    await expectBoth();
  });

  it.each([
    ['office', 'branch'],
    ['branch', 'office'],
  ])('has both after a restart, if %s comes up first', async (...order) => {
    await host.reboot();
    for (const network of order) await host.cpn(['up', network]);
    await expectBoth();
  });

  it('takes over the part of the first while that is down, and gives it back', async () => {
    await host.cpn(['down', 'office']);
    await host.cpn(['reconcile', 'branch']);
    expect((await networks())[1]).toMatchObject({
      drift: [],
      routes: [{ prefix: sharedRoute, via: 'branch-edge', state: 'active' }, { state: 'active' }],
    });
    expect(await reaches(branchPrinter)).toBe(true);
    await host.cpn(['up', 'office']);
    await host.cpn(['reconcile', 'branch']);
    await expectBoth();
  });

  it('loses to the first the routes that this one starts to serve, at the next pass', async () => {
    const { id } = (await networks())[0].network;
    await owner.setRoutes(id, [sharedRoute, '192.168.60.0/24']);
    await host.cpn(['reconcile']);
    expect((await networks())[1].routes).toMatchObject([{}, {}, { prefix: '192.168.60.0/24', state: 'refused' }]);
    expect(await routeTo('192.168.60.0/24')).toMatch(/^192.168.60.0\/24 dev cpn0/);
    expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
    await owner.setRoutes(id, [sharedRoute]);
    await host.cpn(['reconcile']);
    await host.cpn(['reconcile']);
    await expectBoth();
  });

  it("is reported when a peer of the first gets the host's address in the second", async () => {
    const { id } = (await networks())[0].network;
    const added = [];
    for (const name of ['fine', 'hidden']) added.push(await owner.addStranger(id, name, '203.0.113.251:51820'));
    expect((await owner.listPeers(id)).at(-1)).toMatchObject({ name: 'hidden', address: secondAddress });
    await host.cpn(['reconcile']);
    const [first, second] = await networks();
    expect(first.warnings).toContain(
      `hidden is unreachable: its address ${secondAddress} is assigned to this host, on cpn1; cpn leave cpn0 or cpn leave cpn1, and join again for another address`,
    );
    expect(first.state).toBe('degraded');
    expect(second.warnings).toBeUndefined();
    for (const peer of added) await owner.removePeer(id, peer);
    await host.cpn(['reconcile']);
    expect((await networks())[0].warnings?.join() ?? '').not.toContain('unreachable');
    await expectBoth();
  });

  it('has the whole second one after it left the first', async () => {
    const daemon = await startDaemon(host);
    await eventually('the daemon follows both', async () =>
      (await networks()).every(({ sync }: { sync: { mode: string } }) => sync.mode === 'push'),
    );
    await host.cpn(['leave', '--yes', 'office']);
    await eventually('the second one takes over', async () => (await routeTo(sharedRoute)).includes('dev cpn1'));
    await daemon.stop();
    expect(await networks()).toMatchObject([
      {
        interface: 'cpn1',
        drift: [],
        routes: [
          { prefix: sharedRoute, via: 'branch-edge', state: 'active' },
          { prefix: '192.168.60.0/24', state: 'active' },
        ],
      },
    ]);
    expect((await host.exec(['ip', '-br', '-4', 'address', 'show', 'cpn1'])).stdout).toContain(`${secondAddress}/24`);
    for (const there of [branchEdge, branchLaptop, branchPrinter]) {
      expect([there, await reaches(there)]).toEqual([there, true]);
    }
    expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
  });
});
