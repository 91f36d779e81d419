import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Office, patiently, plan, startOffice, status } from '../e2e/office.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { surviveFault } from './control-plane-fault.ts';
import { addEdge, edgeAddress } from './members.ts';
import { addProxiedHost, faultBegins, type ProxiedHost } from './proxied-host.ts';
import type { MapChanges } from './proxy-fault.ts';
import { injecting } from './record.ts';
import { readSessions } from './sessions.ts';
import { whilePinging } from './while-pinging.ts';

let office: Office;
let patientHost: ProxiedHost;
let hastyHost: ProxiedHost;

beforeAll(async () => {
  office = await startOffice({ cidr: '10.77.0.0/16' });
  const edge = await addEdge(office);
  patientHost = await addProxiedHost(office, edge, 1, { interval: 10 });
  hastyHost = await addProxiedHost(office, edge, 2);
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
  ])('16: %s, once, changes nothing', (how, changes, errorPattern) =>
    injecting(16, (row) =>
      surviveFault(patientHost, row, {
        how: `${how}, in one answer`,
        errorPattern,
        begin: () => patientHost.proxy.inject({ kind: 'map', changes }),
        end: () => patientHost.proxy.pass(),
      }),
    ),
  );

  it('16: is applied when it comes twice, and so is the next', () =>
    injecting(16, async (row) => {
      const { host, proxy, daemon } = hastyHost;
      const mark = daemon.mark();
      row.injected('no other peer, for good');
      await proxy.inject({ kind: 'map', changes: { peers: { edge: null, 'host-1': null } } });
      await daemon.awaitLog('doubt', ({ msg }) => msg === faultBegins, mark);
      row.detected();
      await daemon.awaitLog('the removal', ({ msg }) => msg === 'change applied', mark);
      expect(await countPeers(host)).toBe(0);
      const second = daemon.mark();
      await proxy.pass();
      // The host has its peers before they are confirmed and saved.
      await daemon.awaitLog('the peers', ({ msg }) => msg === 'change applied', second);
      expect(await countPeers(host)).toBe(2);
      expect(await host.ping(edgeAddress, patiently)).toMatchObject({ received: 1 });
      row.repaired();
      expect(await status(host)).toMatchObject({ drift: [] });
    }));
});

it('17: 10,000 peers come and go next to a tunnel that loses nothing', { timeout: 180_000 }, () =>
  injecting(17, async (row) => {
    const { host, proxy, daemon } = patientHost;
    const losses = await whilePinging(host, edgeAddress, async () => {
      const before = await countPeers(host);
      const mark = daemon.mark();
      row.injected('10,000 peers at once, and none of them again');
      const crowd = { count: 10_000, from: '10.77.64.0', type: 'origin' };
      await proxy.inject({ kind: 'map', changes: { crowd } });
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
  '42: another peer with each answer touches no other, and the daemon limits its requests',
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
        await proxy.inject({ kind: 'churn' });
        await daemon.awaitLog('a change', ({ msg }) => msg === 'change applied', mark);
        row.detected();
        await eventually('twelve changes', () => applied().length >= 12, { timeoutMs: 120_000 });
        await proxy.pass();
        await eventually('the last one gone', async () => (await countPeers(host)) === before);
        row.repaired();
        const [first, last] = [applied().at(0), applied().at(11)];
        // Ten within ten seconds pass at once: without a rate limit twelve would pass long before.
        expect((last?.time ?? 0) - (first?.time ?? 0)).toBeGreaterThan(5_000);
      });
      row.lost(losses);
      expect(losses.lost).toBe(0);
      await eventually('the last map saved', async () => (await plan(host)).changes.length === 0);
    }),
);

it('a service without ETags and long polls is polled at the interval', async () => {
  const { host, proxy } = hastyHost;
  await proxy.inject({ kind: 'plain' });
  for (let more = 0; more < 3; more++) await proxy.awaitRequest();
  await eventually('polling', async () => (await status(host)).sync.mode === 'poll');
  expect(await status(host)).toMatchObject({ state: 'up', drift: [] });
});
