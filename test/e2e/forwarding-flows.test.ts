import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Flow } from './flow.ts';
import { join, type Office, patiently, startOffice } from './office.ts';

/** A connector with two LANs on a host that forwards everything, so that its packet rules alone keep anything from being forwarded. */
let office: Office;
let router: Host;
let daemon: Daemon;
let member: Host;
let other: Host;
let printer: Host;
let shop: Host;

const [lan, annex] = ['192.168.50.0/24', '192.168.60.0/24'];
const [inLan, inAnnex] = ['192.168.50.10', '192.168.60.10'];
const applied = 'change applied';

beforeAll(async () => {
  office = await startOffice();
  const { lab } = office;
  await office.controlPlane.cpn(['network', 'update', 'office', '--yes', '--route', lan, '--route', annex]);
  router = await lab.addHost('router', { address: '203.0.113.11/24' });
  await router.exec(['sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward']);
  printer = await (await lab.addLan(router, '192.168.50.1/24')).addHost('printer', `${inLan}/24`, { routed: true });
  shop = await (await lab.addLan(router, '192.168.60.1/24')).addHost('shop', `${inAnnex}/24`, { routed: true });
  member = await lab.addHost('member', { address: '203.0.113.12/24' });
  other = await lab.addHost('other', { address: '203.0.113.13/24' });
  await join(office, router, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
  await join(office, member, '--endpoint', '203.0.113.12:51820');
  await join(office, other, '--endpoint', '203.0.113.13:51820');
  daemon = await startDaemon(router, '--interval', '3600');
  for (const host of [member, other]) {
    await eventually(`${host.name} reaches the LAN`, async () => (await host.ping(inLan, patiently)).received === 1, {
      timeoutMs: 60_000,
    });
  }
}, 90_000);

afterAll(() => office?.lab.stop());

/** Makes a change that reaches the router's daemon, and waits until it is applied. */
async function learning(work: () => Promise<unknown>): Promise<void> {
  const mark = daemon.mark();
  await work();
  await daemon.awaitLog('the change', ({ msg }) => msg === applied, mark);
}

it('ends the connections of a route that is taken out of the network, in either direction, and no other', async () => {
  const inward = await Flow.start(member, printer, inLan);
  const outward = await Flow.start(printer, member, '10.77.0.2');
  const untouched = await Flow.start(member, shop, inAnnex);
  await learning(() => office.controlPlane.cpn(['network', 'update', 'office', '--yes', '--route', annex]));
  expect(await Promise.all([inward.arriving(), outward.arriving()])).toEqual([0, 0]);
  await learning(() =>
    office.controlPlane.cpn(['network', 'update', 'office', '--yes', '--route', lan, '--route', annex]),
  );
  expect(await inward.arriving()).toBeGreaterThanOrEqual(9);
  expect(await untouched.stop()).toBe(0);
  await Promise.all([inward.stop(), outward.stop()]);
});

it('ends the connections of the other mode when masquerading is turned off or on, and no other', async () => {
  const untouched = await Flow.start(member, router, '10.77.0.1');
  const start = () => Promise.all([Flow.start(member, printer, inLan), Flow.start(printer, member, '10.77.0.2')]);
  const arriving = (flows: readonly Flow[]) => Promise.all(flows.map((flow) => flow.arriving()));
  const masqueraded = await start();
  await router.cpn(['set', '--no-masquerade']);
  expect(await arriving(masqueraded)).toEqual([0, 0]);
  const plain = await start();
  // Connections that another program masquerades are not ended.
  const nat = 'table ip theirs { chain out { type nat hook postrouting priority 90; oifname "eth2" masquerade; }; }';
  await router.exec(['nft', '-f', '-'], { input: nat });
  const theirs = await Flow.start(member, shop, inAnnex);
  expect(await theirs.arriving()).toBeGreaterThanOrEqual(9);
  await router.cpn(['set', '--masquerade']);
  expect(await arriving(plain)).toEqual([0, 0]);
  expect(await theirs.stop()).toBe(0);
  const again = await Flow.start(member, printer, inLan);
  expect(await again.arriving()).toBeGreaterThanOrEqual(9);
  expect(await untouched.stop()).toBe(0);
  await Promise.all([...masqueraded, ...plain, again].map((flow) => flow.stop()));
});

it('ends the connections of a peer that is removed, and no other', async () => {
  const removed = await Flow.start(other, printer, inLan);
  const untouched = await Flow.start(member, printer, inLan);
  const { peers } = JSON.parse((await office.controlPlane.cpn(['network', 'show', 'office', '--json'])).stdout);
  const { id } = peers.find(({ name }: { name: string }) => name === 'other');
  await learning(() => office.controlPlane.cpn(['peer', 'remove', 'office', String(id), '--yes']));
  expect(await removed.arriving()).toBe(0);
  expect(await untouched.stop()).toBe(0);
  await removed.stop();
});
