import { describe, expect, test } from 'vitest';
import { findBeginning, findFailovers, layOutFailovers } from '../../src/console/logic/events/failovers.ts';
import { mergeEvents } from '../../src/console/logic/network/apply-reply.ts';
import {
  addSamples,
  findBusiest,
  hasTraffic,
  highestOf,
  layOutRates,
  type RateSamples,
} from '../../src/console/logic/network/rates.ts';
import { findLastEvents, summarizeNetwork } from '../../src/console/logic/network/summarize.ts';
import { describeFailures, describeLosses, namePeers } from '../../src/console/logic/peers/bulk.ts';
import {
  listedStates,
  makeRows,
  type PathSummary,
  readView,
  summarizePaths,
  viewPeers,
  writeView,
} from '../../src/console/logic/peers/peer-list.ts';
import { EventType } from '../../src/contract/event.ts';
import { PathState, type PeerHealth, type PeerPath } from '../../src/contract/health.ts';
import { PeerType } from '../../src/contract/peer.ts';
import { at, connector, event, health, healthOf, lan, later, now, path, peer, routeOf } from './samples.ts';

describe('the list of peers', () => {
  const view = readView({});
  const rowsOf = (
    health: readonly (PeerHealth & { readonly path?: PathSummary })[],
    peers = health.map(({ id }) => peer(id)),
  ) =>
    makeRows(
      peers,
      new Map(health.map((each) => [each.id, each])),
      new Map(health.flatMap(({ id, path: own }) => (own === undefined ? [] : [[id, own] as const]))),
      now,
    );
  const idsOf = (rows: ReturnType<typeof rowsOf>, fields: object) =>
    viewPeers(rows, { ...view, ...fields }).map((row) => row.peer.id);

  test.each<[object, PeerHealth['state'] | undefined, string]>([
    [{}, 'online', 'online'],
    [{}, 'offline', 'offline'],
    [{}, 'unknown', 'unknown'],
    [{}, undefined, 'unknown'],
    [{ expires_at: later(1) }, 'online', 'online'],
    [{ expires_at: at }, 'online', 'expired'],
    [{ expires_at: later(-1) }, 'offline', 'expired'],
    [{ suspended_at: later(-1), awaiting_approval: later(-1) }, 'online', 'waiting'],
    [{ suspended_at: later(-1) }, 'online', 'suspended'],
    [{ suspended_at: later(-1), expires_at: later(-1) }, 'online', 'suspended'],
  ])('has a peer with %j that is %j as %s', (fields, state, listed) => {
    const known = state === undefined ? [] : [healthOf(1, { state })];
    expect(rowsOf(known, [peer(1, fields)])[0]?.state).toBe(listed);
  });

  test('has each state, type and order in its URL', () => {
    const sortNames = ['name', 'state', 'last_seen', 'type', 'address', 'path', 'version'] as const;
    const words = [
      ...listedStates.map((state) => ({ state })),
      ...PeerType.options.map((type) => ({ type })),
      ...sortNames.flatMap((sort) => [{ sort }, { sort, isDescending: true }]),
    ];
    for (const fields of words) expect(readView(writeView({ ...view, ...fields }))).toEqual({ ...view, ...fields });
    expect(listedStates.toSorted()).toEqual(['expired', 'offline', 'online', 'suspended', 'unknown', 'waiting']);
  });

  test('is ordered by what needs attention, and by id where that is alike', () => {
    const states = ['online', 'unknown', 'offline'] as const;
    const health = [...states, ...states].map((state, index) => healthOf(index + 1, { state }));
    const peers = health.map(({ id }) => peer(id));
    const rows = rowsOf(health, [...peers, peer(7, { suspended_at: at }), peer(8, { expires_at: at })].toReversed());
    const ids = [3, 6, 2, 5, 1, 4, 7, 8];
    expect(idsOf(rows, { sort: 'state' })).toEqual(ids);
    expect(idsOf(rows, { sort: 'state', isDescending: true })).toEqual(ids.toReversed());
  });

  test('is ordered by address as a number, by version with its numbers, and by when each was seen', () => {
    const versions = ['0.10.0', '0.9.0', null];
    const seen = [later(-9), later(-1), null];
    const rows = rowsOf(
      versions.map((version, index) => healthOf(index + 1, { version, last_seen: seen[index] ?? null })),
    );
    expect(idsOf(rows, { sort: 'version' })).toEqual([3, 2, 1]);
    expect(idsOf(rows, { sort: 'last_seen' })).toEqual([2, 1, 3]);
    const addresses = ['10.77.1.0', '10.77.0.255', '9.255.255.255', '200.0.0.1'];
    const peers = addresses.map((address, index) => peer(index + 1, { address }));
    expect(idsOf(rowsOf([], peers), { sort: 'address' })).toEqual([3, 2, 1, 4]);
  });

  test('is ordered by the worst path: how few of the good, how many of the bad', () => {
    const summaries: PathSummary[] = [
      { state: 'down', count: 3, of: 3 },
      { state: 'down', count: 2, of: 3 },
      { state: 'never', count: 3, of: 3 },
      { state: 'stale', count: 3, of: 3 },
      { state: 'relayed', count: 2, of: 3 },
      { state: 'relayed', count: 3, of: 3 },
      { state: 'direct', count: 2, of: 3 },
      { state: 'direct', count: 3, of: 3 },
    ];
    const rows = rowsOf(
      [...summaries.map((own, index) => ({ ...healthOf(index + 1), path: own })), healthOf(9)].toReversed(),
    );
    expect(idsOf(rows, { sort: 'path' })).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  test('has of as many reports of each kind the better one', () => {
    const order = ['direct', 'relayed', 'stale', 'never', 'down'] as const;
    expect([...order].toSorted()).toEqual(PathState.options.toSorted());
    for (const [index, better] of order.entries())
      for (const worse of order.slice(index + 1)) {
        const reports = [worse, better].map((state, host) => healthOf(host + 2, { paths: [path(1, state)] }));
        expect(summarizePaths(reports).get(1)).toEqual({ state: better, count: 1, of: 2 });
        const more = healthOf(4, { paths: [path(1, worse)] });
        expect(summarizePaths([...reports, more]).get(1)).toEqual({ state: worse, count: 2, of: 3 });
      }
  });
});

describe('the summary of a network', () => {
  const [one, two, idle] = [connector(1), connector(2), connector(3, { routes: [] })];
  const summarize = (
    reports: readonly PeerHealth[],
    routes: ReturnType<typeof routeOf>[],
    peers = [one, two, idle, peer(4)],
  ) => summarizeNetwork({ peers, routes: [lan] }, health([...reports], routes));
  const kinds = (...given: Parameters<typeof summarize>) => summarize(...given).troubles.map(({ kind }) => kind);

  test.each<[string, Partial<ReturnType<typeof routeOf>>, boolean]>([
    ['a standby', { connector: 1, standby: [2] }, false],
    ['no standby', { connector: 1, standby: [] }, true],
    ['no connector that is known', { connector: 99, standby: [] }, false],
    ['no connector', { connector: null, standby: [] }, false],
    ['another state', { state: 'unknown', connector: 1, standby: [] }, false],
  ])('that has %s lacks one, or not', (_, route, lacks) => {
    expect(kinds([], [routeOf(lan, route)]).includes('no-standby')).toBe(lacks);
  });

  test('lacks no standby where there is one connector alone, and counts no route that the network does not have', () => {
    expect(kinds([], [routeOf(lan, { connector: 1 })], [one, idle])).toEqual([]);
    const gone = routeOf('10.9.0.0/24', { state: 'dead' });
    expect(summarize([], [gone])).toMatchObject({ routes: { up: 0, dead: 0, unknown: 1 }, troubles: [] });
  });

  test('has a problem of a host that is online or unknown, and of an offline one that it is offline', () => {
    const problem = 'nft failed';
    for (const state of ['online', 'unknown'] as const)
      expect(kinds([healthOf(4, { state, problem })], [])).toEqual(['failing']);
    expect(kinds([healthOf(4, { state: 'offline', problem })], [])).toEqual(['offline']);
  });

  test('has the routes that a connector that never answered would serve', () => {
    const never = { state: 'unknown', never_answered: true } as const;
    const { troubles } = summarize([healthOf(2, never), healthOf(3, never)], []);
    expect(troubles).toEqual([
      { kind: 'silent-connector', peer: two, routes: [lan] },
      { kind: 'silent-connector', peer: idle, routes: [] },
    ]);
  });

  test.each(EventType.options)('has the event %s among the last ones, or not', (type) => {
    const untold: readonly EventType[] = ['network.updated', 'network.deleted', 'access.refused', 'path.changed'];
    expect(findLastEvents([event(1, type)], 5)).toHaveLength(untold.includes(type) ? 0 : 1);
  });
});

describe('the rates of hosts', () => {
  const report = (id: number, rates: Partial<PeerPath>[], fields: Partial<PeerHealth> = {}) =>
    healthOf(id, { paths: rates.map((each, index) => path(index + 10, 'direct', each)), ...fields });

  test('are the sums of what a host receives and sends, also where it reports one of them', () => {
    const rates = addSamples(
      new Map(),
      health([report(1, [{ rx_rate: 1, tx_rate: 10 }, { rx_rate: 2 }, { tx_rate: 20 }, {}])]),
    );
    expect(rates.get(1)).toEqual([{ reportedAt: at, received: 3, sent: 30 }]);
  });

  test('are of the last sixty reports', () => {
    let rates: RateSamples = new Map();
    for (let step = 0; step < 61; step += 1)
      rates = addSamples(rates, health([report(1, [{ rx_rate: step }], { reported_at: later(step) })]));
    expect([rates.get(1)?.length, rates.get(1)?.[0]?.received, rates.get(1)?.at(-1)?.received]).toEqual([60, 1, 60]);
  });

  test('without the time of a report are those that differ, and stay while a host reports none', () => {
    const of = (rate: number | null) =>
      health([report(1, rate === null ? [] : [{ rx_rate: rate, tx_rate: 1 }], { reported_at: null })]);
    const first = addSamples(new Map(), of(5));
    expect(addSamples(first, of(5)).get(1)).toHaveLength(1);
    expect(addSamples(first, of(6)).get(1)).toHaveLength(2);
    expect(addSamples(first, of(null)).get(1)).toEqual(first.get(1));
    expect(addSamples(first, health([])).size).toBe(0);
  });

  test('make the busiest host that which receives and sends most now', () => {
    const sample = (received: number, sent: number) => ({ reportedAt: at, received, sent });
    const rates: RateSamples = new Map([
      [1, [sample(99, 99), sample(1, 1)]],
      [2, [sample(0, 5)]],
      [3, [sample(4, 0)]],
    ]);
    expect(findBusiest(rates, 2).map(([id]) => id)).toEqual([2, 3]);
  });

  test('fill a chart by the highest of all its lines', () => {
    expect([highestOf([1, 5], [3]), highestOf([], []), highestOf([0])]).toEqual([5, 1, 1]);
    expect([hasTraffic([0], [0, 1]), hasTraffic([0], [0]), hasTraffic()]).toEqual([true, false, false]);
    expect(layOutRates([0, 5, 10], 20, 100, 20)).toEqual({ points: '0,20 50,15 100,10', most: 10, mean: 5 });
    expect(layOutRates([], 20, 100, 20)).toMatchObject({ most: 0, mean: 0 });
  });
});

describe('failovers', () => {
  const [a, b] = [
    { id: 1, name: 'edge-1' },
    { id: 2, name: 'edge-2' },
  ];
  const moved = (id: number, route: string, seconds: number, type: EventType, details: object) =>
    event(id, type, { route, at: later(seconds), details: { ...details } });

  test('are the events about the connector of a route', () => {
    const found = findFailovers(EventType.options.map((type, index) => event(index, type)));
    expect(found.map(({ type }) => type).toSorted()).toEqual(['route.dead', 'route.failed_over', 'route.restored']);
  });

  test.each<[EventType, object, (string | null)[]]>([
    ['route.failed_over', { from: a, to: b }, ['edge-1', 'edge-2']],
    ['route.dead', { from: a }, ['edge-1', null]],
    ['route.restored', { to: b }, [null, 'edge-2']],
  ])('begin with %s', (type, details, connectors) => {
    const line = layOutFailovers([moved(1, lan, 0, type, details)], now + 600_000);
    expect(line?.lanes.map(({ segments }) => segments.map((segment) => segment.connector))).toEqual([connectors]);
  });

  test('have a lane for each route, which ends where the next one of its own begins', () => {
    const other = '192.168.51.0/24';
    const events = [
      moved(1, lan, 0, 'route.dead', { from: a }),
      moved(2, other, 300, 'route.dead', { from: b }),
      moved(3, lan, 600, 'route.restored', { to: b }),
    ];
    const line = layOutFailovers(events, now + 1_000_000, now);
    expect([line?.start, line?.end]).toEqual([now, now + 1_000_000]);
    expect(line?.lanes.map(({ route, segments }) => [route, segments.map(({ start, end }) => [start, end])])).toEqual([
      [
        lan,
        [
          [0, 0],
          [0, 0.6],
          [0.6, 1],
        ],
      ],
      [
        other,
        [
          [0, 0.3],
          [0.3, 1],
        ],
      ],
    ]);
  });

  test('are shown for a minute at least, and to the last of them', () => {
    const events = [moved(1, lan, 0, 'route.dead', { from: a })];
    const line = layOutFailovers(events, now - 5_000, now + 9_000);
    expect([line?.start, line?.end]).toEqual([now - 60_000, now]);
    expect(findBeginning([peer(1, { created_at: later(5) })], [event(1, 'peer.online', { at: later(3) })])).toBe(
      now + 3_000,
    );
    expect(findBeginning([], [])).toBe(Number.POSITIVE_INFINITY);
  });

  test('are merged by their ids: what comes again comes from a restored database', () => {
    const ids = (before: number[], came: number[]) =>
      mergeEvents(
        before.map((id) => event(id, 'peer.online')),
        came.map((id) => event(id, 'peer.online')),
      ).map(({ id }) => id);
    expect([ids([], [1]), ids([1], [2]), ids([1, 2], [2]), ids([2], [1, 2, 3])]).toEqual([[1], [1, 2], [2], [1, 2, 3]]);
  });
});

describe('several peers', () => {
  const names = (count: number) => Array.from({ length: count }, (_, index) => ({ name: `p${index}` }));

  test('are named up to twelve, and then by their number', () => {
    expect(namePeers(names(12))).toMatch(/^p0, .*, p11$/);
    expect(namePeers(names(13))).toMatch(/, p11 and 1 more$/);
    expect([namePeers([]), namePeers(names(1))]).toEqual(['', 'p0']);
  });

  test('that failed have the first three reasons of each kind', () => {
    const failure = (isUnknown: boolean) => names(4).map(({ name }) => ({ name, message: 'No.', isUnknown }));
    expect(describeFailures(failure(false), 'removed')).toBe('4 peers stayed as before. p0: No. p1: No. p2: No.');
    expect(describeFailures(failure(true), 'removed')).toBe(
      '4 peers may be removed or as before: try again. p0: No. p1: No. p2: No.',
    );
  });

  test('take all routes that no other connector serves', () => {
    const routes = [lan, '192.168.51.0/24'];
    const [one, two] = [connector(1), connector(2, { routes: [lan] })];
    const losses = (...leaving: ReturnType<typeof peer>[]) => describeLosses({ peers: [one, two], routes }, leaving);
    expect(losses(two)).toEqual([]);
    expect(losses(one)).toEqual(['192.168.51.0/24 has no connector then: hosts do not reach this route.']);
    expect(losses(one, two)).toEqual([`${routes.join(', ')} have no connector then: hosts do not reach these routes.`]);
  });
});
