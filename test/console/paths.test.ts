import { describe, expect, test } from 'vitest';
import { cellShapes, nameCell, sizeCells } from '../../src/console/logic/matrix/cells.ts';
import { describePathCell, explainPath, explainPeer } from '../../src/console/logic/matrix/explain-path.ts';
import { filterMatrix, isFiltered, noFilter } from '../../src/console/logic/matrix/filter-matrix.ts';
import {
  type CellState,
  cellStates,
  groupOrder,
  indexReach,
  listAround,
  stateOf,
  sumCounts,
} from '../../src/console/logic/matrix/reach.ts';
import { formatExact } from '../../src/console/logic/text/format.ts';
import { type PathHealth, PathState, type PeerHealth, type PeerPath } from '../../src/contract/health.ts';
import { PeerType } from '../../src/contract/peer.ts';
import { at, connector, health, healthOf, path, peer } from './samples.ts';

const [web, db, edge] = [peer(1, { name: 'web' }), peer(2, { name: 'db' }), connector(3, { name: 'edge' })];
const peers = [web, db, edge];
const network = { private_cidr: '10.77.0.0/24', routes: [], peers };

/** What web reports of its path to db, and what is known of each of them. */
function explain(
  paths: readonly PeerPath[],
  {
    own = {},
    other = {},
    back = [] as PeerPath[],
    to = db,
  }: { own?: object; other?: object; back?: PeerPath[]; to?: typeof db } = {},
) {
  const reports = [healthOf(1, { paths: [...paths], ...own }), healthOf(to.id, { paths: back, ...other })];
  return explainPath({ peers }, indexReach(peers, health(reports)), web, to);
}
const factsOf = (explanation: ReturnType<typeof explain>) => Object.fromEntries(explanation.facts);
const commandsOf = ({ remedies }: Pick<ReturnType<typeof explain>, 'remedies'>) =>
  remedies.map(({ at: host, command }) => `${host}: ${command}`);
const explainCommand = 'web: sudo cpn explain 10.77.0.2';
const startAt = (name: string) => `${name}: sudo systemctl enable --now cpn`;

test('each state has its own words, shape and place', () => {
  expect(cellStates.toSorted()).toEqual([...PathState.options, 'unknown'].toSorted());
  expect(groupOrder.toSorted()).toEqual([...PeerType.options].toSorted());
  expect(Object.keys(cellShapes).toSorted()).toEqual(cellStates.toSorted());
  expect(new Set(Object.values(cellShapes)).size).toBe(cellStates.length);
  expect(nameCell('a', 'b', 'down')).toBe('a to b: down');
});

test.each<[number, number, number]>([
  [24, 600, 36],
  [25, 600, 26],
  [24, 599, 26],
])('of %i peers on %i pixels a cell has %i', (count, width, size) => expect(sizeCells(count, width)).toBe(size));

describe('why a path', () => {
  test.each<[CellState, string, string[]]>([
    ['direct', 'db answers web.', []],
    ['relayed', 'web reaches db through a connector.', []],
    ['stale', 'The session is old, and web sent nothing since. The next packet renews it.', [explainCommand]],
    ['down', 'db does not answer web.', [explainCommand]],
    ['never', 'web sends to db, but there was no handshake yet.', [explainCommand]],
    ['unknown', 'web reports no path to db: it sent nothing to it, or does not report.', [explainCommand]],
  ])('is %s, in words and with what helps', (state, summary, commands) => {
    const explanation = explain(state === 'unknown' ? [path(3, 'direct')] : [path(2, state)]);
    expect([explanation.state, explanation.summary, commandsOf(explanation)]).toEqual([state, summary, commands]);
    const purpose = state === 'unknown' ? 'Show the path that a packet would take.' : 'Show where a packet stops.';
    expect(explanation.remedies.map((each) => each.purpose)).toEqual(commands.map(() => purpose));
  });

  test('has each fact that is known, and no other', () => {
    expect(factsOf(explain([path(2, 'down')]))).toEqual({
      Endpoint: 'neither peer has one that the other could dial',
      'Verdict on db': 'online: why 2',
      Witnesses: 'it does not answer web',
    });
    const all = explain([path(2, 'relayed', { via: 3, handshake_age: 90, rtt_ms: 0 })], {
      own: { pin_mismatches: [2], problem: 'of web', drift: 3 },
      other: { state: 'offline', why: 'silent', problem: 'of db', drift: 9 },
    });
    expect(factsOf(all)).toEqual({
      ...{ Relay: 'edge', 'Latest handshake': '90 s before the report', 'Round trip': '0 ms' },
      'Key or address': 'web has another one pinned, and refuses this one',
      ...{ 'Verdict on db': 'offline: silent', 'Problem of web': 'of web', 'Problem of db': 'of db' },
      'Pending changes at web': '3',
    });
    expect(factsOf(explain([path(2, 'direct')], { back: [path(1, 'stale')] }))).toMatchObject({ 'db to web': 'stale' });
    expect(factsOf(explain([], { own: { drift: 0, pin_mismatches: [3] } }))).not.toHaveProperty(
      'Pending changes at web',
    );
  });

  test.each<[string, Partial<PathHealth>, string | undefined]>([
    ['since the switch', { direct_since: at }, `through NAT, since ${formatExact(at)}`],
    ['not, as there was no attempt', {}, undefined],
    [
      'not, as a host returned to the relay',
      { attempt: { at, outcome: 'ended', why: 'idle' } },
      `over since ${formatExact(at)}: they exchanged no packets`,
    ],
    [
      'not, as no NAT keeps its port',
      { attempt: { at, outcome: 'symmetric', symmetric: [1, 2] } },
      `not possible at ${formatExact(at)}: the NAT of web, db uses another port for each destination`,
    ],
    [
      'not, as there is nothing to try',
      { attempt: { at, outcome: 'no-endpoints' } },
      `not possible at ${formatExact(at)}: the peers have no endpoints to try`,
    ],
    [
      'not, as no endpoint answered',
      {
        attempt: {
          ...{ at, outcome: 'failed', symmetric: [2] },
          tried: [
            { by: 1, outcome: 'no-answer', endpoint: '203.0.113.3:4711' },
            { by: 1, outcome: 'handshake', endpoint: '[2001:db8::2]:1' },
            { by: 9, outcome: 'refused', endpoint: '192.0.2.1:1' },
          ],
        },
      },
      `not found at ${formatExact(at)}; web tried 203.0.113.3:4711: no answer, ` +
        '[2001:db8::2]:1: a handshake, but no answer to a probe; ' +
        'a peer that is gone tried 192.0.2.1:1: not tried, because the host excludes it; ' +
        'the NAT of db uses another port for each destination',
    ],
    [
      'not, for a reader who does not get endpoints',
      {
        attempt: {
          ...{ at, outcome: 'failed' },
          tried: [
            { by: 1, outcome: 'no-answer' },
            { by: 1, outcome: 'no-answer' },
            { by: 1, outcome: 'refused' },
          ],
        },
      },
      `not found at ${formatExact(at)}; web tried 2 endpoints: no answer, 1 endpoint: not tried, because the host excludes it`,
    ],
  ])('is direct %s', (_, fields, text) => {
    const state = fields.direct_since ? 'direct' : 'relayed';
    const facts = factsOf(explain([path(2, state, fields)]));
    expect(facts['Direct path']).toBe(text);
    expect(facts).not.toHaveProperty('Endpoint', fields.direct_since && expect.anything());
    // The other one of the pair has the same attempt.
    if (fields.attempt) expect(factsOf(explain([], { back: [path(1, state, fields)] }))['Direct path']).toBe(text);
  });

  test('has the relay, or the direct path, in the text of its cell', () => {
    const paths = [path(2, 'relayed', { via: 3 }), path(3, 'direct', { direct_since: at })];
    const reach = indexReach([web, db, edge], health([healthOf(1, { paths })]));
    expect(describePathCell(reach, web, db).title).toBe('web to db: relayed via edge');
    expect(describePathCell(reach, web, edge)).toMatchObject({
      ...{ label: 'web to edge: direct', title: `web to edge: direct through NAT, since ${formatExact(at)}` },
    });
    expect(describePathCell(reach, db, web)).toEqual({
      ...{ state: 'unknown', shape: cellShapes.unknown, label: 'db to web: unknown' },
    });
    const gone = indexReach([web, db], health([healthOf(1, { paths })]));
    expect(describePathCell(gone, web, db).title).toBe('web to db: relayed via a peer that is gone');
  });

  test.each<[string | null, string | null, boolean]>([
    [null, null, true],
    ['203.0.113.1:1', null, false],
    [null, '203.0.113.1:1', false],
  ])('lacks an endpoint where neither has one: %j, %j', (own, other, lacks) => {
    const [from, to] = [
      { ...web, endpoint: own },
      { ...db, endpoint: other },
    ];
    const reach = indexReach([from, to], health([healthOf(1, { paths: [path(2, 'never')] })]));
    expect('Endpoint' in factsOf(explainPath({ peers: [from, to] }, reach, from, to))).toBe(lacks);
  });

  test('has the hosts that reach the peer, and those that do not', () => {
    const reports = [1, 3, 4, 5, 6].map((id, index) => {
      const states = ['direct', 'down', 'never', 'stale', 'relayed'] as const;
      return healthOf(id, { paths: [path(2, states[index] ?? 'down')] });
    });
    const all = [...peers, ...[4, 5, 6].map((id) => peer(id))];
    const explanation = explainPath({ peers: all }, indexReach(all, health(reports)), web, db);
    expect(factsOf(explanation).Witnesses).toBe('it answers web; it does not answer edge, peer-4');
  });

  test.each<[string, object, string[]]>([
    ['that it refuses', { own: { pin_mismatches: [2] } }, ['web: sudo cpn accept 10.77.0.2', explainCommand]],
    ['to another that it refuses', { own: { pin_mismatches: [3] } }, [explainCommand]],
    ['of a host with a problem', { own: { problem: 'x' } }, ['web: sudo cpn doctor', explainCommand]],
    ['to a host with a problem', { other: { problem: 'x' } }, ['db: sudo cpn doctor', explainCommand]],
    ['to a host that is offline', { other: { state: 'offline' } }, [startAt('db'), explainCommand]],
    ['to a host of which nothing is known', { other: { state: 'unknown' } }, [explainCommand]],
    ['of a host that is offline', { own: { state: 'offline' } }, [startAt('web'), explainCommand]],
    ['of a host that does not report', { own: { reported_at: null } }, [startAt('web'), explainCommand]],
  ])('%s has these commands', (_, fields, commands) => {
    expect(commandsOf(explain([path(2, 'down')], fields))).toEqual(commands);
  });

  test('that works has the commands of its own host alone', () => {
    for (const state of ['direct', 'relayed'] as const) {
      const fields = { own: { problem: 'x' }, other: { problem: 'y', state: 'offline' } };
      expect(commandsOf(explain([path(2, state)], fields))).toEqual(['web: sudo cpn doctor']);
    }
  });

  test('of an offline host is what it said last, and when', () => {
    const { summary, state } = explain([path(2, 'direct')], { own: { state: 'offline' } });
    expect([summary, state]).toEqual([
      `web is offline; its last report, of ${formatExact(at)}, was: direct.`,
      'unknown',
    ]);
    const own = { state: 'offline', reported_at: null };
    expect(explain([path(2, 'down')], { own }).summary).toBe('web is offline; its last report was: down.');
  });
});

describe('why a peer', () => {
  const explainOf = (fields: Partial<PeerHealth>, all = peers) =>
    explainPeer({ ...network, peers: all }, indexReach(all, health([healthOf(1, fields)])), web);

  test('is as it is, with each fact that is known and each command', () => {
    expect(explainOf({})).toEqual({ summary: 'Online: why 1.', facts: [], remedies: [] });
    const { facts, remedies } = explainOf({
      pin_mismatches: [2, 3, 99],
      problem: 'nft failed',
      drift: 2,
      reported_at: null,
    });
    expect(Object.fromEntries(facts)).toEqual({
      ...{ Problem: 'nft failed', 'Key or address': 'refused of db, edge', 'Pending changes': '2' },
    });
    expect(commandsOf({ remedies })).toEqual([
      ...['web: sudo cpn accept 10.77.0.2', 'web: sudo cpn accept 10.77.0.3', 'web: sudo cpn doctor', startAt('web')],
    ]);
    expect(remedies[1]?.purpose).toContain('of edge,');
  });

  test.each<[Partial<PeerHealth>, boolean]>([
    [{}, false],
    [{ state: 'unknown' }, false],
    [{ state: 'offline' }, true],
    [{ reported_at: null }, true],
  ])('%j is to be started: %j', (fields, is) => {
    expect(commandsOf(explainOf(fields))).toEqual(is ? [startAt('web')] : []);
  });

  test('of which nothing is known has no verdict', () => {
    const reach = indexReach(peers, health([]));
    const { summary, remedies } = explainPeer(network, reach, web);
    expect([summary, commandsOf({ remedies })]).toEqual(['There is no verdict on it yet.', [startAt('web')]]);
  });
});

describe('around a peer', () => {
  test('is what does not answer first, in either direction, and then by id', () => {
    const states: [number, PathState | null, PathState | null][] = [
      [2, 'relayed', null],
      [3, 'direct', 'down'],
      [4, null, 'never'],
      [5, 'stale', 'relayed'],
      [6, 'direct', 'direct'],
      [7, 'down', null],
      [8, 'direct', null],
      [9, null, null],
    ];
    const all = [web, ...states.map(([id]) => peer(id))].toReversed();
    const paths = states.flatMap(([id, from]) => (from === null ? [] : [path(id, from)]));
    const others = states.flatMap(([id, , to]) => (to === null ? [] : [healthOf(id, { paths: [path(1, to)] })]));
    const reach = indexReach(all, health([healthOf(1, { paths }), ...others]));
    expect(listAround(reach, 1).map(({ other }) => other.id)).toEqual([3, 7, 4, 5, 6, 8, 2]);
  });
});

describe('the matrix', () => {
  test('is ordered by type, and by name with its numbers', () => {
    const names = ['b', 'a10', 'a9', 'A1'];
    const all = [
      ...names.map((name, index) => peer(index + 1, { name })),
      ...names.map((name, index) => peer(index + 11, { name, peer_type: 'admin_device' })),
      ...names.map((name, index) => connector(index + 21, { name })),
    ];
    const pathsOf = (id: number) => all.flatMap((to) => (to.id === id ? [] : [path(to.id, 'direct')]));
    const reach = indexReach(all, health(all.map(({ id }) => healthOf(id, { paths: pathsOf(id) }))));
    const ids = [24, 23, 22, 21, 4, 3, 2, 1, 14, 13, 12, 11];
    expect([reach.rows, reach.columns].map((some) => some.map(({ id }) => id))).toEqual([ids, ids]);
    expect(sumCounts(reach.groups)).toMatchObject({ direct: 12 * 11, unknown: 0 });
  });

  test('counts each state of each pair of types once, and no pair of a peer with itself', () => {
    const reach = indexReach(
      peers,
      health([
        healthOf(1, { paths: [path(2, 'direct'), path(3, 'stale')] }),
        healthOf(2, { paths: [path(1, 'never')] }),
        healthOf(3, { state: 'offline', paths: [path(1, 'direct')] }),
      ]),
    );
    expect(
      [...reach.groups].map(([group, counts]) => [group, Object.entries(counts).filter(([, count]) => count > 0)]),
    ).toEqual([
      ['connector origin', [['unknown', 2]]],
      [
        'origin connector',
        [
          ['stale', 1],
          ['unknown', 1],
        ],
      ],
      [
        'origin origin',
        [
          ['direct', 1],
          ['never', 1],
        ],
      ],
    ]);
  });

  test.each<[object, boolean]>([
    [{}, false],
    [{ from: ' ' }, false],
    [{ to: ' ' }, false],
    [{ from: 'x' }, true],
    [{ to: 'x' }, true],
    [{ state: 'down' }, true],
    [{ group: { from: 'origin', to: 'origin' } }, true],
  ])('is filtered by %j: %j', (fields, is) => expect(isFiltered({ ...noFilter, ...fields })).toBe(is));

  test.each(cellStates)('shows the rows and columns with a cell that is %s', (state) => {
    const paths = cellStates.flatMap((each, index) => (each === 'unknown' ? [] : [path(index + 10, each)]));
    const targets = cellStates.map((_, index) => peer(index + 10));
    const all = [web, db, ...targets];
    const reports = [healthOf(1, { paths }), healthOf(2, { paths: targets.map(({ id }) => path(id, 'stale')) })];
    const reach = indexReach(all, health(reports));
    const { rows, columns } = filterMatrix(reach, { ...noFilter, state });
    const expected = cellStates.flatMap((each, index) => (each === state ? [index + 10] : []));
    if (state === 'stale') expect([rows.length, columns.length]).toEqual([2, cellStates.length]);
    else expect([rows.map(({ id }) => id), columns.map(({ id }) => id)]).toEqual([[1], expected]);
    for (const row of rows) expect(columns.some(({ id }) => stateOf(reach, row.id, id) === state)).toBe(true);
  });
});
