import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mostPaths, mostRoutes, Report } from '../../../../src/contract/health.ts';
import {
  composeReport,
  formatReport,
  type HostObservation,
  withProblem,
} from '../../../../src/core/health/report/compose-report.ts';
import { trackActivity } from '../../../../src/core/health/report/peer-activity.ts';
import { compareReports } from '../../../../src/core/health/report/report-changes.ts';
import type { ActualPeer } from '../../../../src/core/host-state/actual.ts';
import type { Peer } from '../../../../src/core/map/model.ts';
import { hostPrefix } from '../../../../src/core/net/cidr.ts';
import type { RouteReport } from '../../../../src/core/routing/route-report.ts';
import { address, keyPair, network, peer, prefix } from '../../samples.ts';

const now = 1_700_000_000;
const range = prefix('10.77.0.0/24');
const lan = prefix('192.168.50.0/24');

/** WireGuard's entry of a peer that answered ten seconds ago, unless changed. */
function session(number: number, changes: Partial<ActualPeer> = {}): ActualPeer {
  const { publicKey, address } = peer(number);
  return {
    ...{ publicKey, presharedKey: null, endpoint: null, allowedIps: [hostPrefix(address)], keepalive: null },
    ...{ latestHandshake: now - 10, rxBytes: 500, txBytes: 500 },
    ...changes,
  };
}

/** What host 1 observes with these entries, when it looked at them this many seconds ago too. */
function observe(
  peers: readonly ActualPeer[],
  { earlier = [], ...changes }: Partial<HostObservation> & { readonly earlier?: readonly ActualPeer[] } = {},
): HostObservation {
  const seen = earlier.length === 0 ? new Map() : trackActivity(new Map(), earlier, 900);
  const asked = earlier.length === 0 ? seen : trackActivity(seen, peers, 960);
  return {
    map: network([peer(1), peer(2), peer(3), peer(4, { type: 'connector' })]),
    self: { id: 1, keys: [peer(1).publicKey] },
    reached: peers.map(({ publicKey, allowedIps }) => ({ publicKey, allowedIps })),
    routes: [],
    peers,
    activity: trackActivity(asked, peers, 1_000),
    rtts: new Map(),
    ...{ failed: [], mismatches: [], dead: new Set<string>(), areLansProbed: false },
    ...{ drift: 0, problem: null, now, at: 1_000 },
    ...changes,
  };
}

const pathsOf = (observation: HostObservation) =>
  composeReport(observation).paths.map(({ peer: id, path, via }) => [id, path, ...(via === undefined ? [] : [via])]);

describe('a path', () => {
  it('without a relay is direct, and one under trial is relayed until it is in use', () => {
    const relay = session(4, { allowedIps: [range] });
    const [used, tried] = [session(2, { endpoint: null }), session(3, { allowedIps: [prefix('fe80::3/128')] })];
    const reached = [relay, used];
    expect(pathsOf(observe([relay, used, tried], { reached }))).toEqual([
      [4, 'direct'],
      [2, 'direct'],
      [3, 'relayed', 4],
    ]);
  });

  it.each([
    ['that answered lately', session(2), 'direct'],
    ['whose session is old', session(2, { latestHandshake: now - 181 }), 'stale'],
    ['to which handshakes are sent in vain', session(2, { latestHandshake: null, rxBytes: 0 }), 'never'],
  ] as const)('to a peer %s', (_, entry, path) => {
    expect(pathsOf(observe([entry]))).toEqual([[2, path]]);
  });

  it('is down where what is sent has no answer, and stale once nothing is sent any more', () => {
    const before = session(2, { txBytes: 352 });
    expect(pathsOf(observe([session(2)], { earlier: [before] }))).toEqual([[2, 'down']]);
    const old = session(2, { latestHandshake: now - 500 });
    expect(pathsOf(observe([old], { earlier: [before] }))).toEqual([[2, 'down']]);
    expect(pathsOf(observe([old], { earlier: [before], at: 1_200 }))).toEqual([[2, 'stale']]);
  });

  it('is down where probes fail, and not while the peer is back on probation', () => {
    expect(pathsOf(observe([session(4)], { failed: [{ peer: 4, back: false }] }))).toEqual([[4, 'down']]);
    expect(pathsOf(observe([session(4)], { failed: [{ peer: 4, back: true }] }))).toEqual([[4, 'direct']]);
  });

  it('is not listed to a peer that nothing was ever sent to', () => {
    expect(pathsOf(observe([session(2, { latestHandshake: null, rxBytes: 148, txBytes: 0 })]))).toEqual([]);
    expect(pathsOf(observe([]))).toEqual([]);
  });

  it('of handshakes that were given up is stale', () => {
    const given = session(2, { latestHandshake: null, rxBytes: 0 });
    expect(pathsOf(observe([given], { earlier: [given], at: 1_200 }))).toEqual([[2, 'stale']]);
  });

  it('is relayed through the connector that has the address of the peer, or the range', () => {
    const relay = session(4, { allowedIps: [hostPrefix(peer(4).address), hostPrefix(peer(2).address)] });
    expect(pathsOf(observe([session(2, { allowedIps: [] }), relay]))).toEqual([
      [4, 'direct'],
      [2, 'relayed', 4],
    ]);
    const hub = session(4, { allowedIps: [hostPrefix(peer(4).address), range] });
    expect(pathsOf(observe([hub]))).toEqual([
      [4, 'direct'],
      [2, 'relayed', 4],
      [3, 'relayed', 4],
    ]);
  });

  it('has what was received and what was sent apart', () => {
    const earlier = [session(4, { rxBytes: 500, txBytes: 500 })];
    const later = session(4, { rxBytes: 800_500, txBytes: 80_500 });
    const activity = trackActivity(trackActivity(new Map(), earlier, 900), [later], 1_000);
    expect(composeReport(observe([later], { activity })).paths[0]).toMatchObject({ rx_rate: 8_000, tx_rate: 800 });
  });

  it('has a handshake of now, where the clock of the handshake is ahead, and a bounded round trip', () => {
    const rtts = new Map([[peer(4).publicKey, 90_000]]);
    const { paths } = composeReport(observe([session(4, { latestHandshake: now + 60 })], { rtts }));
    expect(formatReport({ paths }, now).paths).toEqual([{ peer: 4, path: 'direct', handshake_age: 0, rtt_ms: 60_000 }]);
  });

  it('is none to this host itself, under any of its keys', () => {
    const twin = peer(5, { publicKey: keyPair(9).publicKey });
    const keys = [peer(1).publicKey, twin.publicKey];
    const entry = session(5, { publicKey: twin.publicKey });
    const map = network([peer(1), twin]);
    expect(pathsOf(observe([entry], { map }))).toEqual([[5, 'direct']]);
    expect(pathsOf(observe([entry], { map, self: { id: 1, keys } }))).toEqual([]);
  });

  it('to a peer that has no allowed IPs for now is its own, where no relay has its address alone', () => {
    const hub = session(4, { allowedIps: [hostPrefix(peer(4).address), range] });
    expect(pathsOf(observe([session(2), hub]))).toEqual([
      [4, 'direct'],
      [2, 'direct'],
      [3, 'relayed', 4],
    ]);
    const reached = [session(2, { allowedIps: [] }), hub];
    expect(pathsOf(observe([session(2), hub], { reached }))[1]).toEqual([2, 'direct']);
  });

  it('has the time of the handshake, the measured rates and the time of probes', () => {
    const earlier = [session(4, { rxBytes: 500, txBytes: 0 })];
    const rtts = new Map([[peer(4).publicKey, 12.345]]);
    const report = composeReport(observe([session(4, { rxBytes: 60_500, txBytes: 6_000 })], { earlier, rtts }));
    expect(formatReport({ paths: report.paths }, now + 5).paths).toEqual([
      { peer: 4, path: 'direct', handshake_age: 15, rtt_ms: 12.3, rx_rate: 0, tx_rate: 0 },
    ]);
  });
});

describe('a route', () => {
  const route = (state: RouteReport['state'], via: string | null = null): RouteReport => ({
    ...{ prefix: lan, via, state, reason: null },
  });
  const routesOf = (routes: readonly RouteReport[], changes: Partial<HostObservation> = {}) =>
    composeReport(observe([session(4)], { routes, ...changes })).routes;

  it('names the connector in use, and none that does not answer', () => {
    const taken = [route('taken', 'peer-4'), route('standby', 'peer-2')];
    expect(routesOf(taken)).toEqual([{ route: lan, connector: 4 }]);
    expect(routesOf(taken, { failed: [{ peer: 4, back: false }] })).toEqual([{ route: lan, connector: null }]);
    expect(routesOf([route('missing')])).toEqual([{ route: lan, connector: null }]);
    const never = [session(4, { latestHandshake: null, rxBytes: 0 })];
    expect(composeReport(observe(never, { routes: taken })).routes).toEqual([{ route: lan, connector: null }]);
    const old = [session(4, { latestHandshake: now - 500 })];
    expect(composeReport(observe(old, { routes: taken })).routes).toEqual([{ route: lan, connector: 4 }]);
  });

  it('that is served here as a LAN prefix with other addresses is reported with both, until it is not', () => {
    const local = prefix('192.168.1.0/24');
    const mapped = composeReport(observe([], { routes: [{ ...route('served'), local }] }));
    expect(mapped.map).toEqual([{ route: lan, local }]);
    const plain = composeReport(observe([], { routes: [route('served')] }));
    expect(plain.map).toEqual([]);
    const always = () => true;
    expect(compareReports(plain, mapped, always).transitions).toEqual({ map: mapped.map });
    expect(formatReport({ map: [] }, 0)).toEqual({ map: [] });
    expect(formatReport({ ...plain, complete: true }, 0)).not.toHaveProperty('map');
    expect(formatReport({ ...mapped, complete: true }, 0)).toMatchObject({ map: [{ route: lan, local }] });
  });

  it('that is served here says whether its LAN answers, as far as that is known', () => {
    const dead = new Set<string>([lan]);
    expect(routesOf([route('served')])).toEqual([{ route: lan, connector: 1 }]);
    expect(routesOf([route('served')], { areLansProbed: true })).toEqual([{ route: lan, connector: 1, lan: 'up' }]);
    expect(routesOf([route('served')], { dead })).toEqual([{ route: lan, connector: 1, lan: 'down' }]);
    expect(routesOf([route('withdrawn')], { dead })).toEqual([{ route: lan, connector: null, lan: 'down' }]);
  });

  it('that this host refuses is left out, and so is one of IPv6', () => {
    const six: RouteReport = { ...route('missing'), prefix: prefix('2001:db8::/64') };
    expect(routesOf([route('refused', 'peer-4'), six])).toEqual([]);
  });
});

describe('a report', () => {
  const numbered = (id: number, changes: Partial<Peer> = {}) =>
    peer(2, { id, publicKey: keyPair(id).publicKey, address: address(`10.78.${id >> 8}.${id & 255}`), ...changes });
  const many = (count: number) => Array.from({ length: count }, (_, at) => numbered(at + 2));
  const entryOf = (each: Peer, changes: Partial<ActualPeer> = {}) =>
    session(2, { publicKey: each.publicKey, allowedIps: [hostPrefix(each.address)], ...changes });

  it('is within the bounds of the contract, connectors and peers that were heard first', () => {
    const peers = [...many(600), numbered(700, { type: 'connector' })];
    const entries = peers.map((each) => entryOf(each, each.id === 601 ? {} : { latestHandshake: null, rxBytes: 0 }));
    const routes = Array.from({ length: 60 }, (_, at): RouteReport => {
      return { prefix: prefix(`192.168.${at}.0/24`), via: null, state: 'missing', reason: null };
    });
    const mismatches = peers.map(({ id }) => id);
    const observation = observe(entries, { map: network([peer(1), ...peers]), routes, mismatches });
    const report = formatReport(
      { ...composeReport({ ...observation, problem: 'x\0'.repeat(400) }), complete: true },
      now,
    );
    expect(report.paths?.slice(0, 3).map(({ peer: id }) => id)).toEqual([700, 601, 2]);
    expect([report.paths?.length, report.routes?.length]).toEqual([mostPaths, mostRoutes]);
    expect(Report.parse(report)).toEqual(report);
    expect(report.problem).toBe(`${'x'.repeat(297)}...`);
  });

  it('lists few of the peers behind a relay, which may be all of a large network', () => {
    const connector = numbered(700, { type: 'connector' });
    const hub = entryOf(connector);
    const map = network([peer(1), ...many(600), connector], { cidr: prefix('10.78.0.0/16') });
    const reached = [{ publicKey: hub.publicKey, allowedIps: [...hub.allowedIps, map.cidr] }];
    expect(composeReport(observe([hub], { map, reached })).paths).toHaveLength(33);
  });

  it.each([
    ['x'.repeat(300), 'x'.repeat(300)],
    ['x'.repeat(301), `${'x'.repeat(297)}...`],
    ['\u{1f600}'.repeat(301), `${'\u{1f600}'.repeat(297)}...`],
    ['a\0b', 'ab'],
  ])('has a problem within the limit, and nothing that a database refuses', (problem, sent) => {
    expect(withProblem(composeReport(observe([])), problem).problem).toBe(sent);
    expect(composeReport(observe([], { problem })).problem).toBe(sent);
  });

  it('leaves out what has no id of the contract', () => {
    const named = peer(2, { id: 'b-2' });
    const observation = observe([session(2)], { map: network([peer(1), named]), mismatches: ['b-2'] });
    expect(composeReport(observation)).toMatchObject({ paths: [], pinMismatches: [] });
  });

  it('is a report of the contract, whatever the counters are', () => {
    const counter = fc.nat(2 ** 40);
    const entry = fc.record({
      number: fc.constantFrom(2, 3, 4),
      latestHandshake: fc.option(fc.integer({ min: now - 1_000, max: now + 1_000 })),
      rxBytes: counter,
      txBytes: counter,
    });
    fc.assert(
      fc.property(fc.array(entry), fc.array(entry), fc.float({ min: 0 }), (before, after, rtt) => {
        const entries = (list: typeof before) => [
          ...new Map(list.map(({ number, ...changes }) => [number, session(number, changes)])).values(),
        ];
        const rtts = new Map([[peer(4).publicKey, Number.isFinite(rtt) ? rtt : 0]]);
        const report = composeReport(observe(entries(after), { earlier: entries(before), rtts }));
        const sent = formatReport({ ...report, complete: true }, now);
        expect(Report.parse(JSON.parse(JSON.stringify(sent)))).toEqual(sent);
      }),
    );
  });
});
