import { expect, test } from 'vitest';
import { findBeginning, layOutFailovers } from '../../src/console/logic/events/failovers.ts';
import { moveByKey, sizeCells } from '../../src/console/logic/matrix/cells.ts';
import { explainPath, explainPeer } from '../../src/console/logic/matrix/explain-path.ts';
import { filterMatrix, noFilter } from '../../src/console/logic/matrix/filter-matrix.ts';
import { indexReach, listAround, stateOf, sumCounts } from '../../src/console/logic/matrix/reach.ts';
import { mergeEvents, mostEvents } from '../../src/console/logic/network/apply-reply.ts';
import { addSamples, findBusiest, toPoints } from '../../src/console/logic/network/rates.ts';
import { formatExact, formatRate, formatSeconds } from '../../src/console/logic/text/format.ts';
import { type Event, EventType } from '../../src/contract/event.ts';
import type { PeerHealth, PeerPath } from '../../src/contract/health.ts';
import type { Peer, PeerType } from '../../src/contract/peer.ts';
import { describeEvent, eventTypes } from '../../src/core/events/describe-event.ts';

const at = '2030-01-01T00:00:00.000Z';
const minute = 60_000;

function peer(id: number, name: string, peer_type: PeerType = 'origin', endpoint: string | null = null): Peer {
  return { id, name, peer_type, address: `10.77.0.${id}`, public_key: 'k', endpoint, created_at: at };
}

function reportOf(id: number, paths: PeerPath[], fields: Partial<PeerHealth> = {}): PeerHealth {
  const verdict = { state: 'online', reachable_by: 1, witnesses: 1, why: 'it reaches the control plane' } as const;
  const unseen = { last_seen: at, version: null, platform: null, source_address: null, reported_at: at };
  const rest = { routes: [], drift: null, pin_mismatches: [], problem: null };
  return { id, name: `peer-${id}`, ...verdict, ...unseen, paths, ...rest, ...fields };
}

const peers = [peer(1, 'web-10'), peer(2, 'web-9'), peer(3, 'edge', 'connector', '203.0.113.1:1'), peer(4, 'phone')];
const plain = { private_cidr: '10.77.0.0/24', routes: [] };
const [web10, web9, edge] = peers as [Peer, Peer, Peer, Peer];

function officeReach(fields: Partial<PeerHealth> = {}) {
  return indexReach(peers, {
    peers: [
      reportOf(1, [
        { peer: 2, path: 'down', handshake_age: 300 },
        { peer: 3, path: 'direct', rtt_ms: 1.5 },
        { peer: 99, path: 'direct' },
      ]),
      reportOf(3, [{ peer: 1, path: 'direct' }], fields),
      reportOf(4, [], { state: 'offline', reported_at: null, why: 'no request on record since it joined' }),
    ],
    routes: [],
  });
}

test('rows report, columns are reported about, by type and name; the rest is silent', () => {
  const { rows, columns, silent, groups } = officeReach();
  expect(rows.map(({ name }) => name)).toEqual(['edge', 'web-10']);
  expect(columns.map(({ name }) => name)).toEqual(['edge', 'web-9', 'web-10']);
  expect(silent.map(({ name }) => name)).toEqual(['phone']);
  expect(Object.fromEntries(groups)).toMatchObject({
    'origin origin': { down: 1, unknown: 0 },
    'origin connector': { direct: 1, unknown: 0 },
    'connector origin': { direct: 1, unknown: 1 },
  });
  expect(groups.has('connector connector')).toBe(false);
  expect(sumCounts(groups)).toEqual({ direct: 2, relayed: 0, stale: 0, down: 1, never: 0, unknown: 1 });
});

test('what an offline host reported last is no longer current', () => {
  const paths: PeerPath[] = [{ peer: 1, path: 'direct', rx_rate: 5 }];
  const reach = officeReach({ state: 'offline', paths, routes: [{ route: '192.168.1.0/24', connector: 3 }] });
  expect(reach.rows.map(({ name }) => name)).toEqual(['edge', 'web-10']);
  expect(stateOf(reach, 3, 1)).toBe('unknown');
  expect(sumCounts(reach.groups)).toMatchObject({ direct: 1, unknown: 2 });
  expect(reach.health.get(3)?.routes).toEqual([]);
  expect(filterMatrix(reach, { ...noFilter, state: 'direct' }).rows.map(({ name }) => name)).toEqual(['web-10']);
  expect(explainPath({ peers }, reach, edge, web10).summary).toBe(
    `edge is offline; its last report, of ${formatExact(at)}, was: direct.`,
  );
  expect(listAround(reach, 3).map(({ from, to, last }) => [from?.path, to?.path, last?.path])).toEqual([
    [undefined, 'direct', 'direct'],
  ]);
  const report = reportOf(3, paths);
  const rates = addSamples(new Map(), { peers: [report], routes: [] });
  expect([...rates.keys()]).toEqual([3]);
  expect(addSamples(rates, { peers: [{ ...report, state: 'offline' }], routes: [] }).size).toBe(0);
});

test.each([
  [{}, ['edge', 'web-10'], ['edge', 'web-9', 'web-10']],
  [{ from: 'web' }, ['web-10'], ['edge', 'web-9', 'web-10']],
  [{ from: 'CONNECTOR' }, ['edge'], ['edge', 'web-9', 'web-10']],
  [{ to: '10.77.0.2' }, ['edge', 'web-10'], ['web-9']],
  [{ state: 'down' }, ['web-10'], ['web-9']],
  [{ state: 'down', to: 'edge' }, [], []],
  [{ state: 'direct' }, ['edge', 'web-10'], ['edge', 'web-10']],
  [{ state: 'unknown' }, ['edge'], ['web-9']],
  [{ group: { from: 'connector', to: 'origin' } }, ['edge'], ['web-9', 'web-10']],
] as const)('the filter %j', (filter, rows, columns) => {
  const found = filterMatrix(officeReach(), { ...noFilter, ...filter });
  expect(found.rows.map(({ name }) => name)).toEqual(rows);
  expect(found.columns.map(({ name }) => name)).toEqual(columns);
});

test.each([
  ['ArrowUp', false, 0, 1],
  ['ArrowDown', false, 2, 1],
  ['ArrowLeft', false, 1, 0],
  ['ArrowRight', false, 1, 2],
  ['PageDown', false, 9, 1],
  ['PageUp', false, 0, 1],
  ['Home', false, 1, 0],
  ['End', false, 1, 4],
  ['Home', true, 0, 0],
  ['End', true, 9, 4],
])('the key %s, with Ctrl %s', (key, ctrlKey, row, column) => {
  expect(moveByKey({ row: 1, column: 1 }, { rows: 10, columns: 5, page: 20 }, { key, ctrlKey })).toEqual({
    row,
    column,
  });
});

test('no other key moves, and none leaves the matrix', () => {
  const extent = { rows: 2, columns: 2, page: 1 };
  expect(moveByKey({ row: 0, column: 0 }, extent, { key: 'a', ctrlKey: false })).toBeNull();
  const last = { row: 1, column: 1 };
  for (const key of ['ArrowDown', 'ArrowRight']) expect(moveByKey(last, extent, { key, ctrlKey: false })).toEqual(last);
});

test('a path that is down has its witnesses, and the command that shows where packets stop', () => {
  const { state, summary, facts, remedies } = explainPath({ peers }, officeReach(), web10, web9);
  expect([state, summary]).toEqual(['down', 'web-9 does not answer web-10.']);
  expect(Object.fromEntries(facts)).toEqual({
    'Latest handshake': '5 min before the report',
    Endpoint: 'neither peer has one that the other could dial',
    Witnesses: 'it does not answer web-10',
  });
  expect(remedies.map(({ at: host, command }) => [host, command])).toEqual([['web-10', 'sudo cpn explain 10.77.0.2']]);
});

test('a path that works has no remedy, unless its host has a problem', () => {
  const works = explainPath({ peers }, officeReach(), web10, edge);
  expect(works.remedies).toEqual([]);
  expect(Object.fromEntries(works.facts)).toMatchObject({
    'Round trip': '1.5 ms',
    'edge to web-10': 'direct',
    'Verdict on edge': 'online: it reaches the control plane',
    Witnesses: 'it answers web-10',
  });
  const reach = officeReach({ problem: 'nft: refused', pin_mismatches: [1], drift: 2 });
  const { facts, remedies } = explainPath({ peers }, reach, edge, web10);
  expect(Object.fromEntries(facts)).toMatchObject({
    'Key or address': 'edge has another one pinned, and refuses this one',
    'Problem of edge': 'nft: refused',
    'Pending changes at edge': '2',
  });
  expect(remedies.map(({ command }) => command)).toEqual(['sudo cpn accept 10.77.0.1', 'sudo cpn doctor']);
});

test('a peer that does not report is to be started', () => {
  const phone = peers[3] as Peer;
  const commands = ({ remedies }: Pick<ReturnType<typeof explainPath>, 'remedies'>) =>
    remedies.map(({ at: host, command }) => `${host}: ${command}`);
  expect(commands(explainPath({ peers }, officeReach(), edge, phone))).toEqual([
    'phone: sudo systemctl enable --now cpn',
    'edge: sudo cpn explain 10.77.0.4',
  ]);
  expect(commands(explainPeer({ ...plain, peers }, officeReach(), phone))).toEqual([
    'phone: sudo systemctl enable --now cpn',
  ]);
  expect(explainPeer({ ...plain, peers }, officeReach(), phone).summary).toBe(
    'Offline: no request on record since it joined.',
  );
});

test('a relayed path names its connector, also one that is gone', () => {
  const relayed = (via: number) =>
    indexReach(peers, { peers: [reportOf(1, [{ peer: 2, path: 'relayed', via }])], routes: [] });
  expect(explainPath({ peers }, relayed(3), web10, web9).summary).toBe('web-10 reaches web-9 through edge.');
  expect(explainPath({ peers }, relayed(77), web10, web9).summary).toContain('through a peer that is gone');
});

test('around a peer, what does not answer comes first', () => {
  expect(listAround(officeReach(), 1).map(({ other, from, to }) => [other.name, from?.path, to?.path])).toEqual([
    ['web-9', 'down', undefined],
    ['edge', 'direct', 'direct'],
  ]);
  expect(stateOf(officeReach(), 4, 1)).toBe('unknown');
});

function event(id: number, type: EventType, minutes: number, details: Event['details'] = {}): Event {
  const time = new Date(Date.parse(at) + minutes * minute).toISOString();
  return { id, at: time, type, network: 1, peer: { id: 3, name: 'edge' }, route: '192.168.1.0/24', details };
}

const [one, two] = [
  { id: 3, name: 'edge-1' },
  { id: 4, name: 'edge-2' },
];

test('failovers are laid out on a line that ends now', () => {
  const events = [
    event(1, 'peer.online', -50),
    event(2, 'route.failed_over', 0, { from: one, to: two, why: 'x' }),
    event(3, 'route.dead', 50, { from: two }),
    event(4, 'route.restored', 75, { to: one }),
  ];
  const line = layOutFailovers(events, Date.parse(at) + 100 * minute);
  expect(line?.lanes).toHaveLength(1);
  const segments = line?.lanes[0]?.segments.map(({ start, end, connector }) => [
    Math.round(start * 110),
    Math.round(end * 110),
    connector,
  ]);
  expect(segments).toEqual([
    [0, 10, 'edge-1'],
    [10, 60, 'edge-2'],
    [60, 85, null],
    [85, 110, 'edge-1'],
  ]);
  const now = layOutFailovers([event(2, 'route.failed_over', 0, { from: one, to: two })], Date.parse(at));
  expect(now?.lanes[0]?.segments).toEqual([
    { start: 0, end: 0.94, connector: 'edge-1' },
    { start: 0.94, end: 1, connector: 'edge-2' },
  ]);
  expect(layOutFailovers([event(1, 'peer.online', 0)], 0)).toBeNull();
});

test('the line of a new network begins with it', () => {
  const events = [event(1, 'peer.enrolled', -2), event(2, 'route.failed_over', 0, { from: one, to: two })];
  const [now, minutes] = [Date.parse(at) + 2 * minute, (time = 0) => (time - Date.parse(at)) / minute];
  expect(minutes(findBeginning(peers, events))).toBe(-2);
  const line = layOutFailovers(events, now, findBeginning(peers, events));
  expect([minutes(line?.start), line?.lanes[0]?.segments[0]]).toEqual([
    -2,
    { start: 0, end: 0.5, connector: 'edge-1' },
  ]);
  expect(minutes(layOutFailovers(events, now)?.start)).toBe(-8);
});

test.each([
  [8, 1440, 36],
  [25, 1440, 26],
  [8, 360, 26],
])('the cells of %d peers on %d pixels', (count, width, size) => expect(sizeCells(count, width)).toBe(size));

test('each type of event has words, and one of a later version too', () => {
  expect(Object.keys(eventTypes).sort()).toEqual([...EventType.options].sort());
  for (const type of EventType.options) expect(describeEvent(event(1, type, 0))).toMatch(/edge|192\.168|network/);
  expect(describeEvent(event(1, 'route.failed_over', 0, { from: one, to: null, why: 'it is offline' }))).toBe(
    '192.168.1.0/24 moved from edge-1 to no connector: it is offline',
  );
  expect(describeEvent(event(1, 'pin.mismatch', 0, { reported_by: { id: 9, name: null } }))).toBe(
    'peer 9 refuses the changed key or address of edge',
  );
  expect(describeEvent(event(1, 'network.updated', 0, { private_cidr: 'x', name: 'y' }))).toBe(
    'the network changed: private cidr, name',
  );
  expect(describeEvent(event(1, 'later.type' as EventType, 0))).toBe('later.type edge 192.168.1.0/24');
});

test('events are appended, at most so many, and a restored database replaces them', () => {
  const make = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, index) => event(from + index, 'peer.online', 0));
  expect(mergeEvents(make(1, 2), [])).toHaveLength(2);
  expect(mergeEvents(make(1, 2), make(3, 4)).map(({ id }) => id)).toEqual([1, 2, 3, 4]);
  expect(mergeEvents(make(7, 9), make(1, 2)).map(({ id }) => id)).toEqual([1, 2]);
  const full = mergeEvents(make(1, mostEvents), make(mostEvents + 1, mostEvents + 5));
  expect([full.length, full[0]?.id]).toEqual([mostEvents, 6]);
});

test('rates are kept for each report, and the busiest hosts come first', () => {
  const health = (reported_at: string | null, rx_rate: number) => ({
    peers: [
      reportOf(1, [{ peer: 2, path: 'direct', rx_rate, tx_rate: 1 }], { reported_at }),
      reportOf(2, [{ peer: 1, path: 'direct' }], { reported_at }),
      reportOf(3, [{ peer: 1, path: 'direct', tx_rate: 50 }], { reported_at: at }),
    ],
    routes: [],
  });
  const first = addSamples(new Map(), health('a', 10));
  expect(addSamples(first, health('a', 10)).get(1)).toHaveLength(1);
  const second = addSamples(first, health('b', 90));
  expect(second.get(1)?.map(({ received, sent }) => [received, sent])).toEqual([
    [10, 1],
    [90, 1],
  ]);
  expect(second.has(2)).toBe(false);
  expect(findBusiest(second, 1).map(([id]) => id)).toEqual([1]);
  expect(findBusiest(first, 9).map(([id]) => id)).toEqual([3, 1]);
});

test('a line of values fills its box', () => {
  expect(toPoints([0, 5, 10], 100, 20)).toBe('0,20 50,10 100,0');
  expect(toPoints([4], 100, 20)).toBe('0,0 100,0');
  expect(toPoints([0, 0], 100, 20)).toBe('0,20 100,20');
});

test.each([
  [0, '0 B/s'],
  [999, '999 B/s'],
  [1000, '1.0 kB/s'],
  [123_456, '123 kB/s'],
  [2_500_000, '2.5 MB/s'],
  [7e12, '7000 GB/s'],
])('the rate %d', (rate, text) => expect(formatRate(rate)).toBe(text));

test.each([
  [0, '0 s'],
  [119, '119 s'],
  [300, '5 min'],
  [10_800, '3 h'],
  [864_000, '10 days'],
])('%d seconds', (seconds, text) => expect(formatSeconds(seconds)).toBe(text));
