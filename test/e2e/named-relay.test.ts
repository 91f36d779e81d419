import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Event } from '../../src/contract/event.ts';
import type { Health } from '../../src/contract/health.ts';
import type { Network } from '../../src/contract/network.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { DataCenter } from './data-center.ts';
import { patiently } from './office.ts';

/** The relay that the control plane names, and the standby. */
let center: DataCenter;
let first: Host;
let second: Host;
let laptop: Host;
let tablet: Host;

beforeAll(async () => {
  center = await DataCenter.start();
  first = await center.addConnector(1);
  second = await center.addConnector(2);
  laptop = await center.addLaptop('laptop', '203.0.113.40');
  tablet = await center.addLaptop('tablet', '203.0.113.41');
  for (const host of [laptop, tablet]) await center.awaitAnswers(host, first, second);
}, 60_000);
afterAll(() => center?.stop());

async function get<Resource>(path: string): Promise<Resource> {
  const { stdout } = await center.controlPlane.cpn(['api', 'GET', `/api/networks/${center.network}${path}`]);
  return JSON.parse(stdout).data;
}
const readNetwork = () => get<Network>('');
const idOf = async ({ name }: Host) => (await readNetwork()).peers.find((peer) => peer.name === name)?.id;
const followers = async () =>
  (await readNetwork()).peers.flatMap(({ name, follows_relay }) => (follows_relay ? name : [])).toSorted();
const whyOf = async ({ name }: Host) => (await get<Health>('/health')).peers.find((peer) => peer.name === name)?.why;
const listChanges = async () => (await get<Event[]>('/events')).filter(({ type }) => type === 'relay.changed');
const reaches = async (from: Host, to: Host) => (await from.ping(center.address(to), patiently)).received === 1;

test('every host is marked as a follower of the first connector, and keeps that as the relay dies', {
  timeout: 180_000,
}, async () => {
  const all = [first, second, laptop, tablet].map(({ name }) => name).toSorted();
  await eventually('all follow', async () => (await followers()).join() === all.join(), { timeoutMs: 60_000 });
  expect((await readNetwork()).relay).toBe(await idOf(first));
  expect(await reaches(laptop, tablet)).toBe(true);

  // Hosts reach the relay without its daemon.
  center.daemon(first).process.signal('SIGKILL');
  const lost = 'its connection was lost, but';
  await eventually('it is lost', async () => (await whyOf(first))?.startsWith(lost), { timeoutMs: 60_000 });
  expect((await readNetwork()).relay).toBe(await idOf(first));
  await center.restartDaemon(first);
  await eventually('it is back', async () => (await whyOf(first))?.startsWith('it reaches the control plane'), {
    timeoutMs: 60_000,
  });

  await first.uplink.cut();
  const relay = await idOf(second);
  await eventually('another one is named', async () => (await readNetwork()).relay === relay, { timeoutMs: 120_000 });
  expect((await listChanges()).at(-1)).toMatchObject({
    peer: { name: 'edge-2' },
    details: { from: { name: 'edge-1' }, to: { name: 'edge-2' }, why: 'edge-1 is offline' },
  });
  expect(await followers()).toEqual(all.filter((name) => name !== 'edge-1'));
  expect(await reaches(laptop, tablet)).toBe(true);

  await first.uplink.restore();
  await eventually('it follows', async () => (await followers()).join() === all.join(), { timeoutMs: 120_000 });
  expect((await readNetwork()).relay).toBe(relay);
});
