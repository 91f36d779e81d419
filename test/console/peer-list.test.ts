import { expect, test } from 'vitest';
import {
  type BulkAction,
  describeFailures,
  describeLosses,
  isAlreadyDone,
  namePeers,
} from '../../src/console/logic/peers/bulk.ts';
import { changeRoutes } from '../../src/console/logic/peers/connectors.ts';
import {
  makeRows,
  type PeerListView,
  readView,
  summarizePaths,
  viewPeers,
  writeView,
} from '../../src/console/logic/peers/peer-list.ts';
import { searchPeers } from '../../src/console/logic/peers/peer-text.ts';
import type { PeerHealth, PeerPath } from '../../src/contract/health.ts';
import type { Peer } from '../../src/contract/peer.ts';

const at = '2030-01-01T00:00:00.000Z';
const now = Date.parse('2030-01-02T00:00:00.000Z');

function peer(id: number, name: string, fields: Partial<Peer> = {}): Peer {
  const rest = { peer_type: 'origin', public_key: 'k', endpoint: null, created_at: at } as const;
  return { id, name, address: `10.77.0.${id}`, ...rest, ...fields };
}

function healthOf(id: number, fields: Partial<PeerHealth> = {}): PeerHealth {
  const verdict = { state: 'online', reachable_by: 1, witnesses: 1, why: '' } as const;
  const seen = { last_seen: at, version: '0.1.0', platform: null, source_address: null, reported_at: at };
  const rest = { paths: [], routes: [], drift: null, pin_mismatches: [], problem: null };
  return { id, name: `peer-${id}`, ...verdict, ...seen, ...rest, ...fields };
}

const paths = (...states: PeerPath['path'][]): PeerPath[] => states.map((path, step) => ({ peer: step + 1, path }));

const peers = [
  peer(1, 'web-10'),
  peer(2, 'Zoë', { peer_type: 'admin_device' }),
  peer(3, 'web-9', { expires_at: at }),
  peer(20, 'edge', { peer_type: 'connector', suspended_at: at }),
  peer(5, 'edge-5', { peer_type: 'connector' }),
];
const health = [
  healthOf(1, { last_seen: '2030-01-01T10:00:00.000Z', version: '0.10.0', paths: paths('direct', 'relayed') }),
  healthOf(2, { state: 'offline', last_seen: '2029-12-30T10:00:00.000Z', version: '0.9.0' }),
  healthOf(5, { state: 'unknown', last_seen: null, version: null, paths: paths('down', 'relayed', 'direct') }),
];
const rows = makeRows(peers, new Map(health.map((each) => [each.id, each])), summarizePaths(health), now);
const base: PeerListView = readView({});
const names = (fields: Partial<PeerListView>) => viewPeers(rows, { ...base, ...fields }).map((row) => row.peer.name);

test('the list is sorted by each column, both ways', () => {
  expect(names({})).toEqual(['edge', 'edge-5', 'web-9', 'web-10', 'Zoë']);
  expect(names({ isDescending: true })[0]).toBe('Zoë');
  expect(names({ sort: 'address' })).toEqual(['web-10', 'Zoë', 'web-9', 'edge-5', 'edge']);
  expect(names({ sort: 'last_seen' }).slice(0, 2)).toEqual(['web-10', 'Zoë']);
  expect(names({ sort: 'state' })).toEqual(['Zoë', 'edge-5', 'web-10', 'edge', 'web-9']);
  expect(names({ sort: 'type' }).slice(0, 2)).toEqual(['edge-5', 'edge']);
  expect(names({ sort: 'version' }).slice(-2)).toEqual(['Zoë', 'web-10']);
  // The worst path first, and those without one last.
  expect(names({ sort: 'path' }).slice(0, 2)).toEqual(['Zoë', 'web-10']);
});

test('the list is filtered by state and by type', () => {
  expect(names({ state: 'offline' })).toEqual(['Zoë']);
  expect(names({ state: 'suspended' })).toEqual(['edge']);
  expect(names({ state: 'expired' })).toEqual(['web-9']);
  expect(names({ type: 'connector', state: 'unknown' })).toEqual(['edge-5']);
});

test('a search finds names without their marks, and with them', () => {
  const people = ['Zoë', 'Søren Łukasz', '北京-web', 'ZOE-2'].map((name, step) => peer(step + 1, name));
  const found = (query: string) => searchPeers(people, query).map(({ name }) => name);
  expect(found('zoe')).toEqual(['Zoë', 'ZOE-2']);
  expect(found('ZOË')).toEqual(['Zoë', 'ZOE-2']);
  expect(found('soren lukasz')).toEqual(['Søren Łukasz']);
  expect(found('北京')).toEqual(['北京-web']);
});

test('a view is the same after the URL, and what is not valid there has its default', () => {
  const view: PeerListView = { search: 'zoe', state: 'offline', type: 'origin', sort: 'last_seen', isDescending: true };
  expect(readView(writeView(view))).toEqual(view);
  expect(writeView(base)).toEqual({ q: '', state: '', type: '', sort: '' });
  expect(readView({ state: '<b>', type: 'constructor', sort: '-__proto__' })).toEqual({ ...base, isDescending: true });
});

test('a path is the state that most hosts report', () => {
  expect(summarizePaths(health).get(2)).toEqual({ state: 'relayed', count: 2, of: 2 });
  expect(summarizePaths(health).get(1)).toEqual({ state: 'direct', count: 1, of: 2 });
  expect(summarizePaths([healthOf(1, { state: 'offline', paths: paths('direct') })]).size).toBe(0);
});

test('of many peers only the first are named', () => {
  expect(namePeers(Array.from({ length: 14 }, (_, step) => ({ name: `p${step}` })))).toMatch(
    /^p0, .*, p11 and 2 more$/,
  );
});

test('what peers take with them is stated: routes, and devices whose profile dials one of them', () => {
  const edge = peer(1, 'edge-1', { peer_type: 'connector' });
  const device = (id: number, name: string, connector: number) => {
    const profile = { connector, public_key: 'k', endpoint: '203.0.113.1:51820', routes: [], declined: [] };
    return peer(id, name, { peer_type: 'admin_device', via: 'connectors', profile });
  };
  const [phone, tablet, other] = [device(2, 'phone', 1), device(3, 'tablet', 1), device(4, 'other', 9)];
  const network = { peers: [edge, phone, tablet, other], routes: ['192.168.1.0/24'] };
  const route = '192.168.1.0/24 has no connector then: hosts do not reach this route.';
  expect(describeLosses(network, [edge])).toEqual([
    route,
    'phone, tablet have no other connector and reach nothing then.',
  ]);
  expect(describeLosses(network, [edge, phone])).toEqual([
    route,
    'tablet has no other connector and reaches nothing then.',
  ]);
  expect(describeLosses(network, [phone, other])).toEqual([]);
});

test('a peer whose change may have been carried out did not stay as before', () => {
  const refused = { name: 'web-1', message: 'The peer is locked.', isUnknown: false };
  const lost = { name: 'web-2', message: 'The control plane does not answer.', isUnknown: true };
  expect(describeFailures([], 'removed')).toBeNull();
  expect(describeFailures([refused], 'removed')).toBe('1 peer stayed as before. web-1: The peer is locked.');
  expect(describeFailures([lost], 'suspended')).toBe(
    '1 peer may be suspended or as before: try again. web-2: The control plane does not answer.',
  );
  expect(describeFailures([lost, refused, lost], 'removed')).toMatch(/^1 peer stayed .* 2 peers may be removed or /);
});

test('of all actions and refusals, only the removal of a peer that is not there is already done', () => {
  const actions: readonly BulkAction[] = ['suspend', 'resume', 'expire', 'remove'];
  const statuses = [0, 400, 401, 403, 404, 409, 410, 422, 429, 500, 503];
  const done = actions.flatMap((action) => {
    return statuses.filter((status) => isAlreadyDone(action, status)).map((status) => `${action} ${status}`);
  });
  expect(done).toEqual(['remove 404']);
});

test('other routes of a connector are sent with those that the user saw, and the same ones are not sent', () => {
  const [a, b, range] = ['192.168.1.0/24', '192.168.2.0/24', '10.77.0.0/24'];
  const all = peer(1, 'edge', { peer_type: 'connector' });
  const some = { ...all, routes: [a, b] };
  const drained = { ...all, routes: [a], withdrawn: [b, range] };
  expect(changeRoutes(all, range, [a])).toEqual({ routes: [a], expected_routes: null });
  expect(changeRoutes(some, range, [b])).toEqual({ routes: [b], expected_routes: [a, b] });
  expect(changeRoutes(some, range, null)).toEqual({ routes: null, expected_routes: [a, b] });
  expect(changeRoutes(drained, range, null)).toEqual({ routes: null, expected_routes: [a, b] });
  expect([changeRoutes(all, range, null), changeRoutes(some, range, [b, a])]).toEqual([{}, {}]);
  expect([changeRoutes({ ...all, routes: [] }, range, []), changeRoutes(drained, range, [a])]).toEqual([{}, {}]);
});
