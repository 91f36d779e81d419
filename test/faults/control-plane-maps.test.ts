import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Office, patiently, plan, startOffice, status } from '../e2e/office.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { endure } from './endure.ts';
import { addEdge, edgeAddress } from './members.ts';
import { injecting } from './record.ts';
import { readSessions } from './sessions.ts';
import type { MapChanges } from './trouble.ts';
import { addTroubledHost, type TroubledHost, troubleBegins } from './troubled-host.ts';
import { whilePinging } from './while-pinging.ts';

let office: Office;
let patientHost: TroubledHost;
let hastyHost: TroubledHost;

beforeAll(async () => {
  office = await startOffice({ cidr: '10.77.0.0/16' });
  const edge = await addEdge(office);
  patientHost = await addTroubledHost(office, edge, 1, { interval: 10 });
  hastyHost = await addTroubledHost(office, edge, 2);
});

afterAll(() => office?.lab.stop());

// A fault that was not survived must not be met by the next test.
afterEach(async () => {
  await patientHost.proxy.pass();
  await hastyHost.proxy.pass();
});

const countPeers = async (host: Host) => (await readSessions(host)).size;

describe('a map that would empty the tunnel', () => {
  it.each<[string, MapChanges, RegExp]>([
    ['no peers at all', { network: { peers: [] } }, /no longer lists this host/],
    ['no other peer', { peers: { edge: null, 'host-2': null } }, /lists no other peer/],
    ['everybody but this host', { peers: { 'host-1': null } }, /no longer lists this host/],
  ])('16: %s, once, changes nothing', (how, changes, says) =>
    injecting(16, (row) =>
      endure(patientHost, row, {
        how: `${how}, in one answer`,
        says,
        begin: () => patientHost.proxy.make({ kind: 'map', changes }),
        end: () => patientHost.proxy.pass(),
      }),
    ),
  );

  it('16: is believed when it is said twice, and so is the next', () =>
    injecting(16, async (row) => {
      const { host, proxy, daemon } = hastyHost;
      const mark = daemon.mark();
      row.injected('no other peer, for good');
      await proxy.make({ kind: 'map', changes: { peers: { edge: null, 'host-1': null } } });
      await daemon.awaitLog('doubt', ({ msg }) => msg === troubleBegins, mark);
      row.detected();
      await daemon.awaitLog('the removal', ({ msg }) => msg === 'change applied', mark);
      expect(await countPeers(host)).toBe(0);
      const second = daemon.mark();
      await proxy.pass();
      // The host has its peers before it is confirmed that they are right, and saved.
      await daemon.awaitLog('the peers', ({ msg }) => msg === 'change applied', second);
      expect(await countPeers(host)).toBe(2);
      expect(await host.ping(edgeAddress, patiently)).toMatchObject({ received: 1 });
      row.repaired();
      expect(await status(host)).toMatchObject({ drift: [] });
    }));
});

it('17: 10,000 peers come and go beside a tunnel that loses nothing', { timeout: 180_000 }, () =>
  injecting(17, async (row) => {
    const { host, proxy, daemon } = patientHost;
    const losses = await whilePinging(host, edgeAddress, async () => {
      const before = await countPeers(host);
      const mark = daemon.mark();
      row.injected('10,000 peers at once, and none of them again');
      const crowd = { count: 10_000, from: '10.77.64.0', type: 'origin' };
      await proxy.make({ kind: 'map', changes: { crowd } });
      await daemon.awaitLog('the change', ({ msg }) => msg === 'change applied', mark, 60_000);
      row.detected();
      expect(await countPeers(host)).toBe(before + 10_000);
      expect(await status(host)).toMatchObject({ drift: [] });
      const second = daemon.mark();
      await proxy.pass();
      await daemon.awaitLog('the change back', ({ msg }) => msg === 'change applied', second, 60_000);
      row.repaired();
      expect(await countPeers(host)).toBe(before);
      expect(daemon.since(mark).filter(({ level }) => level >= 40)).toEqual([]);
    });
    row.lost(losses);
    expect(losses.lost).toBe(0);
  }),
);

it(
  '42: another peer with each answer touches no other, and the service is not asked without end',
  {
    timeout: 240_000,
  },
  () =>
    injecting(42, async (row) => {
      const { host, proxy, daemon } = hastyHost;
      const losses = await whilePinging(host, edgeAddress, async () => {
        const before = await countPeers(host);
        const mark = daemon.mark();
        const applied = () => daemon.since(mark).filter(({ msg }) => msg === 'change applied');
        row.injected('a new map at once in each answer');
        await proxy.make({ kind: 'churn' });
        await daemon.awaitLog('a change', ({ msg }) => msg === 'change applied', mark);
        row.detected();
        await eventually('twelve changes', () => applied().length >= 12, { timeoutMs: 120_000 });
        await proxy.pass();
        await eventually('the last one gone', async () => (await countPeers(host)) === before);
        row.repaired();
        const [first, last] = [applied().at(0), applied().at(11)];
        // Ten within ten seconds are let through at once: a loop without a pace would be through with twelve long before.
        expect((last?.time ?? 0) - (first?.time ?? 0)).toBeGreaterThan(5_000);
      });
      row.lost(losses);
      expect(losses.lost).toBe(0);
      await eventually('the last map saved', async () => (await plan(host)).changes.length === 0);
    }),
);

it('a service that knows no ETag and holds nothing back is asked at the interval', async () => {
  const { host, proxy } = hastyHost;
  await proxy.make({ kind: 'plain' });
  for (let more = 0; more < 3; more++) await proxy.awaitRequest();
  await eventually('polling', async () => (await status(host)).sync.mode === 'poll');
  expect(await status(host)).toMatchObject({ state: 'up', drift: [] });
});
