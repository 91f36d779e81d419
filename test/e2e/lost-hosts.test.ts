import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Health, PeerHealth } from '../../src/contract/health.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { cutPath, DataCenter } from './data-center.ts';
import { patiently } from './office.ts';

/** Three hosts that reach each other directly, and no connector. */
let center: DataCenter;
let watching: Host;
let dead: Host;
let cut: Host;

beforeAll(async () => {
  center = await DataCenter.start();
  watching = await center.addOrigin('watching', '203.0.113.21');
  dead = await center.addOrigin('dead', '203.0.113.22');
  cut = await center.addOrigin('cut', '203.0.113.23');
  for (const host of [dead, cut]) await watching.ping(center.address(host), patiently);
  for (const host of [watching, dead, cut]) await untilState(host, ({ reported_at }) => reported_at !== null);
}, 60_000);
afterAll(() => center?.stop());

async function readHealth(host: Host): Promise<PeerHealth> {
  const { stdout } = await center.controlPlane.cpn(['api', 'GET', `/api/networks/${center.network}/health`]);
  const health: Health = JSON.parse(stdout).data;
  const found = health.peers.find(({ name }) => name === host.name);
  if (found === undefined) throw new Error(`the control plane does not list ${host.name}`);
  return found;
}

async function untilState(host: Host, isIt: (health: PeerHealth) => boolean): Promise<PeerHealth> {
  const read = async () => {
    const health = await readHealth(host);
    return isIt(health) ? health : null;
  };
  return eventually(`the state of ${host.name}`, read, { timeoutMs: 60_000 });
}

async function listOffline(): Promise<string[]> {
  const { stdout } = await center.controlPlane.cpn(['events', 'office', '--type', 'peer.offline', '--json']);
  return JSON.parse(stdout).events.map(({ peer }: { peer: { name: string } }) => peer.name);
}

test('a host without power is offline; one that only lost the control plane is not', { timeout: 90_000 }, async () => {
  await cutPath(cut, center.controlPlane.host.address);
  await dead.uplink.cut();
  await dead.powerOff();
  const { why } = await untilState(dead, ({ state }) => state === 'offline');
  expect(why).toMatch(/^not seen for \d+ s; 0 of 1 host reach it$/);
  // The other host reports on it a moment later.
  const health = await untilState(cut, ({ why }) => why.includes('lost') && !why.includes('no other host'));
  expect(health).toMatchObject({ state: 'online', why: 'its connection was lost, but 1 of 1 host reaches it' });
  expect((await readHealth(watching)).paths).toContainEqual(expect.objectContaining({ path: 'down' }));
  const offline = await eventually('the event', async () => {
    const found = await listOffline();
    return found.length > 0 ? found : null;
  });
  expect(offline).toEqual(['dead']);
});
