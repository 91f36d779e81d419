import { describe, expect, it } from 'vitest';
import { describeEvaluation } from '../../../src/app/problems/describe-evaluation.ts';
import {
  findClones,
  findConfigRemarks,
  findExpiryProblem,
  findLanProblems,
  findPinProblems,
  findSkippedPeers,
  findUnusedMaps,
} from '../../../src/app/problems/find-problems.ts';
import { findServiceProblems } from '../../../src/app/problems/find-state-problems.ts';
import { evaluateNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import type { Problem } from '../../../src/core/problems/problem.ts';
import { type Notes, noNotes } from '../../../src/store/notes.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { address, dialled, keyPair, network, options, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt, self } from '../joined-state.ts';
import { one, serving, two } from '../serving.ts';
import { SimulatedHost } from '../simulated-host.ts';

const given = (found: readonly Problem[]) => found.map(({ code, facts }): [string, object] => [code, facts]);
const state = joinedTo(mapAt('"1"', [peer(2), peer(3)]));
const link = { interface: 'cpn0' };

it('another host with the identity of this one comes before peers that alternate, in the order of the map', () => {
  const alternating = { [keyPair(3).publicKey]: ['a:1', 'b:1'], [keyPair(9).publicKey]: ['c:1'] };
  const since = '2026-01-01T00:00:00.000Z';
  const peers = [['peer-alternating', { ...link, peer: 'peer-3', endpoints: ['a:1', 'b:1'] }]];
  expect(given(findClones(state, { sync: {}, alternating }))).toEqual(peers);
  expect(given(findClones(state, { sync: { clonedSince: since }, alternating }))).toEqual([
    ['identity-cloned', { ...link, since }],
    ...peers,
  ]);
  expect(findClones(state, { sync: {}, alternating: {} })).toEqual([]);
});

it('what is not used of a wg-quick text is reported, and nothing where all is used', () => {
  const facts = { ...link, service: state.service.url };
  const withText = (text?: { dns: string[]; remarks: string[] }): Joined => {
    return { ...state, membership: { ...state.membership, ...(text && { text }) } };
  };
  expect(findConfigRemarks(withText())).toEqual([]);
  expect(findConfigRemarks(withText({ dns: [], remarks: [] }))).toEqual([]);
  expect(given(findConfigRemarks(withText({ dns: ['10.0.0.53', 'corp'], remarks: ['x', 'y'] })))).toEqual([
    ['dns-ignored', { ...facts, servers: ['10.0.0.53', 'corp'] }],
    ['config-remark', { ...facts, remark: 'x' }],
    ['config-remark', { ...facts, remark: 'y' }],
  ]);
});

it.each([
  [0, 0, 0],
  [1, 1, 0],
  [10, 10, 0],
  [11, 10, 1],
  [35, 10, 25],
])('of %i skipped peers %i are named, and %i are counted', (count, named, more) => {
  const skipped = Array.from({ length: count }, (_, at) => ({
    ...{ id: at, name: `x${at}`, publicKey: null, address: null, reason: 'is bad' },
  }));
  const found = given(findSkippedPeers(joinedTo(mapAt('"1"', [], { skipped }))));
  expect(found.slice(0, named).map(([, facts]) => (facts as { peer: number }).peer)).toEqual(
    Array.from({ length: named }, (_, at) => at),
  );
  expect(found.slice(named)).toEqual(more === 0 ? [] : [['peers-skipped', { ...link, more }]]);
});

const day = 86_400_000;

it.each([
  [2.4 * 3_600_000 + 1, null],
  [
    2.4 * 3_600_000,
    ['login-expires-soon', /^log in again at https:\/\/203\.0\.113\.99 before 2026-06-01T02:24:00\.000Z$/],
  ],
  [0, ['login-expired', /^log in again at https:\/\/203\.0\.113\.99$/]],
])('a host that each login keeps for a day, and that has %i ms left', (left, expected) => {
  const now = new Date('2026-06-01T00:00:00.000Z');
  const own = { ...self, expiresAt: now.getTime() + left, reauthHours: 24 };
  const [found] = findExpiryProblem(joinedTo(network([own, peer(2)], { id: 7 })), now);
  const [code, remedy] = expected ?? [];
  expect(found?.code).toBe(code);
  if (found) expect(found.remedy).toMatch(remedy as RegExp);
});

it.each([
  [7 * day + 1, null],
  [7 * day, ['expires-soon', 7]],
  [6 * day + 1, ['expires-soon', 7]],
  [day, ['expires-soon', 1]],
  [1, ['expires-soon', 1]],
  [0, ['peer-expired', undefined]],
  [-day, ['peer-expired', undefined]],
])('a host that has %i ms left', (left, expected) => {
  const now = new Date('2026-06-01T00:00:00.000Z');
  const expiresAt = now.getTime() + left;
  const ofNetwork = (id: number | string | null) =>
    network([{ ...self, expiresAt }, peer(2, { expiresAt: 1 })], { id });
  const [found] = findExpiryProblem(joinedTo(ofNetwork(7)), now);
  expect(found ? [found.code, found.facts.days] : null).toEqual(expected);
  if (found) expect(found.facts).toMatchObject({ ...link, network: 7, peer: 1 });
  // The remedy takes a number.
  const [other] = findExpiryProblem(joinedTo(ofNetwork('office')), now);
  expect(other?.facts.network).toBe(expected === null ? undefined : 'NETWORK');
});

describe('the sync', () => {
  const sync = noNotes.sync;

  it.each(['token', 'forbidden', 'gone'] as const)('that is refused (%s) is a problem of that kind', (refused) => {
    expect(given(findServiceProblems(state, { sync: { ...sync, refused } }))).toEqual([
      ['sync-refused', { ...link, refused }],
    ]);
  });

  it('has its other problems, each by itself and all together', () => {
    const { membership } = state;
    const tokenless = { ...state, membership: { ...membership, accessToken: null } };
    const codes = (of: Joined, changes: Partial<Notes['sync']>) =>
      findServiceProblems(of, { sync: { ...sync, ...changes } }).map(({ code }) => code);
    expect(codes(state, {})).toEqual([]);
    expect(codes(state, { error: 'unreachable' })).toEqual([]);
    expect(codes(tokenless, {})).toEqual(['no-access']);
    expect(codes(state, { repliesEarly: true })).toEqual(['replies-early']);
    expect(codes(state, { refusesDeltas: true })).toEqual(['deltas-refused']);
    expect(codes(tokenless, { refused: 'gone', repliesEarly: true, refusesDeltas: true })).toHaveLength(4);
  });
});

it('a changed key is one by its peer, with both keys, until it is accepted', () => {
  const known = { address: address('10.77.0.2'), publicKey: keyPair(12).publicKey, identity: null, serial: 0, peer: 2 };
  const claimed = { ...known, publicKey: keyPair(2).publicKey };
  const pins = [{ ...known, claimed }];
  for (const pin of ['report', 'strict'] as const) {
    expect(given(findPinProblems({ ...state, pins, options: { ...options, pin } }))).toMatchObject([
      [
        'pin-mismatch',
        {
          ...{ peer: 2, name: 'peer-2', address: '10.77.0.2', pin },
          ...{ known_key: keyPair(12).publicKey, claimed_key: keyPair(2).publicKey },
        },
      ],
    ]);
  }
  expect(findPinProblems({ ...state, pins: [{ ...known, claimed: null }] })).toEqual([]);
});

describe('the LANs of a connector', () => {
  const probes = [
    { host: '192.168.50.1', port: null },
    { host: 'nas.example', port: 443 },
    { host: '198.51.100.1', port: 22 },
  ];
  const connector = serving({ options: { ...options, probes } });
  const notes = { dead: [], ways: null, probed: {} };
  const untried = (target: string, why: string, error = '') => ['probe-untried', { ...link, target, error, why }];
  const outside = untried('198.51.100.1:22', 'elsewhere');

  it('have targets that prove nothing: behind no route, without an address, or that failed', () => {
    const target = 'nas.example:443';
    const found = (probed: Notes['probed']) => given(findLanProblems(connector, { ...notes, probed }));
    // A name that was not tried yet is no problem.
    expect(found({})).toEqual([outside]);
    const unresolved = { address: null, trouble: null };
    expect(found({ [target]: unresolved })).toEqual([untried(target, 'unresolved'), outside]);
    expect(found({ [target]: { address: address('192.168.60.7'), trouble: null } })).toEqual([outside]);
    expect(found({ [target]: { address: address('192.0.2.1'), trouble: null } })).toEqual([
      untried(target, 'elsewhere'),
      outside,
    ]);
    expect(found({ [target]: { address: address('192.168.60.7'), trouble: 'no ping' } })).toEqual([
      untried(target, 'failed', 'no ping'),
      outside,
    ]);
  });

  it('have maps without effect where no route of theirs is served', () => {
    const [used, unused] = [
      { route: one, local: prefix('192.168.1.0/24') },
      { route: prefix('10.201.1.0/24'), local: prefix('192.168.2.0/24') },
    ];
    const mapped = serving({ options: { ...options, maps: [used, unused] } });
    const facts = { ...link, ...unused, network: 'office', isSwapped: false };
    expect(given(findUnusedMaps(mapped))).toEqual([['map-unused', facts]]);
    expect(findUnusedMaps(connector)).toEqual([]);
    // A map of a wider prefix maps the route inside it.
    const wider = { route: prefix('192.168.0.0/16'), local: prefix('172.20.0.0/16') };
    expect(findUnusedMaps(serving({ options: { ...options, maps: [wider] } }))).toEqual([]);
    const swapped = serving({ options: { ...options, maps: [{ route: prefix('192.168.1.0/24'), local: one }] } });
    expect(findUnusedMaps(swapped).map(({ remedy }) => remedy)).toEqual([
      `the route comes first: "cpn set cpn0 --drop-map 192.168.1.0/24 --map ${one}=192.168.1.0/24"`,
    ]);
  });

  it('that are silent have the targets behind them, and whether others know', () => {
    const probed = { 'nas.example:443': { address: address('192.168.60.7'), trouble: null } };
    const silent = (route: string, targets: string[], is_withdrawn: boolean) => [
      'lan-silent',
      { ...link, route, targets, is_withdrawn },
    ];
    expect(given(findLanProblems(connector, { ...notes, probed, dead: [one, two] })).slice(0, 2)).toEqual([
      silent(one, ['192.168.50.1'], false),
      silent(two, ['nas.example:443'], false),
    ]);
    const { membership } = connector;
    const peers = membership.map.peers.map((each) => (each.id === 1 ? { ...each, withdrawn: [one] } : each));
    const withdrawn = { ...connector, membership: { ...membership, map: { ...membership.map, peers } } };
    expect(given(findLanProblems(withdrawn, { ...notes, dead: [one] }))[0]).toEqual(
      silent(one, ['192.168.50.1'], true),
    );
    const ways = {
      [one]: { isOwn: true, links: [], gone: 'eth1 is down' },
      [two]: { isOwn: true, links: ['eth2'], gone: null },
    };
    expect(given(findLanProblems(withdrawn, { ...notes, ways })).slice(0, -1)).toEqual([
      ['lan-unreachable', { ...link, route: one, reason: 'eth1 is down', is_withdrawn: true }],
    ]);
  });
});

/** Each condition of a network that is up with peers 2 and 3, and what is said of it. */
const conditions: readonly (readonly [
  string,
  { state?: Partial<Joined>; notes?: Partial<Notes>; actual?: (simulated: SimulatedHost) => void },
  readonly string[],
])[] = [
  ['all is well', {}, []],
  ['it is drained', { state: { drained: true } }, ['drained']],
  ['a map was rolled back', { state: { refused: '"7"' } }, ['map-rolled-back']],
  ['drift keeps coming back', { notes: { troubles: ['x', 'y'] } }, ['repair-postponed', 'repair-postponed']],
  ['it was taken down', { state: { enabled: false } }, ['taken-down']],
  [
    'the interface is missing',
    {
      actual: (host) => {
        host.actual = { ...host.actual, link: null, device: null, routes: [] };
      },
    },
    ['interface-missing'],
  ],
  [
    'WireGuard lacks its peers',
    {
      actual: (host) => {
        const { device } = host.actual;
        host.actual = { ...host.actual, device: device && { ...device, peers: [] } };
      },
    },
    ['drift'],
  ],
  [
    'a change of keys is under way',
    {
      state: {
        rotation: {
          ...{ phase: 'announcing', keyPair: keyPair(8), proof: null, wayBack: null, witnesses: [] },
          begunAt: '2026-01-01T00:00:00.000Z',
        },
      },
    },
    ['key-changing'],
  ],
];

describe('the problems of a network', () => {
  it.each(conditions)('where %s', async (_, changes, codes) => {
    const base = joinedTo(
      mapAt('"1"', [peer(2, { endpoint: dialled(2) }), peer(3, { endpoint: dialled(3) })], { routes: [] }),
    );
    const simulated = await SimulatedHost.with(base);
    await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 1 });
    changes.actual?.(simulated);
    const evaluation = await evaluateNetwork(simulated.tools, { ...(await simulated.state()), ...changes.state });
    const now = simulated.tools.now().getTime() / 1000;
    const { problems } = describeEvaluation(evaluation, { ...noNotes, ...changes.notes }, now);
    expect(problems.map(({ code }) => code)).toEqual(codes);
  });
});
