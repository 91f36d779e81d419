import { describe, expect, test } from 'vitest';
import type { Observation, StoredObservation } from '../../../src/control-plane/health/observe.ts';
import { findTransitions, reportedPeers } from '../../../src/control-plane/health/transitions.ts';
import {
  judgeObserved,
  lab,
  lan,
  observedConnector,
  observedHost,
  observedNetwork,
  reportOf,
  secondsAgo,
} from './observed-network.ts';

/** What changes since the last events, within limits. */
const compare = (observation: Observation, mayState: Parameters<typeof findTransitions>[2] = () => true) =>
  findTransitions(observation, judgeObserved(observation), mayState);
const stated = (announced: 'online' | 'offline' | null, seconds: number | null) => ({
  health: { announced, last_seen: seconds === null ? null : secondsAgo(seconds) },
});
const typesOf = ({ events }: ReturnType<typeof compare>) =>
  events.map(({ type, peer, route }) => [type, peer?.id ?? route]);

describe('a peer', () => {
  test.each([
    ['first request', null, 1, {}, 'online'],
    ['return', 'offline', 1, {}, 'online'],
    ['silence', 'online', 91, {}, 'offline'],
    ['request while it is online', 'online', 1, {}, undefined],
    ['silence that is stated', 'offline', 91, {}, undefined],
    // Only hosts report it: a phone, which makes no requests.
    ['first report by others', null, null, { 1: 'direct' }, 'online'],
    ['report by others of its return', 'offline', null, { 1: 'direct' }, 'online'],
    ['report by others of its silence', 'online', null, { 1: 'down' }, 'offline'],
    // A host that made requests returns only with one.
    ['report by others of the return of a host', 'offline', 1000, { 1: 'direct' }, undefined],
    ['report by others of a host that is silent to the control plane', 'online', 1000, { 1: 'direct' }, undefined],
  ] as const)('has an event at its %s', (_what, announced, seconds, paths, state) => {
    const observation = observedNetwork([
      observedHost(1, stated(announced, seconds)),
      observedHost(2, { ...stated('online', 1), report: reportOf(paths) }),
    ]);
    const transitions = compare(observation);
    expect(transitions.peers).toEqual(state === undefined ? [] : [[1, state]]);
    expect(typesOf(transitions)).toEqual(state === undefined ? [] : [[`peer.${state}`, 1]]);
  });

  test('that left the map is neither online nor offline, and the states are in the order of ids', () => {
    const peers = [observedHost(2, stated(null, 1)), observedHost(9, stated('online', 91))];
    const transitions = compare(observedNetwork(peers, {}, [11, 5]));
    expect(transitions.peers).toEqual([
      [2, 'online'],
      [5, null],
      [9, 'offline'],
      [11, null],
    ]);
    expect(typesOf(transitions)).toEqual([
      ['peer.online', 2],
      ['peer.offline', 9],
    ]);
  });

  test('whose limit is reached is held back, and no other', () => {
    const peers = [1, 2, 3].map((id) => observedHost(id, stated(null, 1)));
    const transitions = compare(observedNetwork(peers), (subject) => subject !== 2);
    expect([transitions.peers.map(([id]) => id), transitions.isHeldBack, transitions.subjects]).toEqual([
      [1, 3],
      true,
      [1, 3],
    ]);
    expect(compare(observedNetwork(peers)).isHeldBack).toBe(false);
  });

  test('that only hosts report counts for all of them too, within what they have left', () => {
    const phones = [1, 2, 3, 4].map((id) => observedHost(id, { health: null }));
    const witness = { ...stated(null, 1), report: reportOf({ 1: 'direct', 2: 'direct', 3: 'direct', 4: 'direct' }) };
    const observation = observedNetwork([...phones, observedHost(5, witness)]);
    const transitions = compare(observation, (subject, count = 1) => subject !== reportedPeers || count <= 2);
    expect([transitions.peers.map(([id]) => id), transitions.isHeldBack]).toEqual([[1, 2, 5], true]);
    expect(transitions.subjects.filter((subject) => subject === reportedPeers)).toHaveLength(2);
  });

  test('that is the only connector of devices names them in its event', () => {
    const profileOf = (connector: number) => ({ peer: { profile: JSON.stringify({ connector }) } });
    const observation = observedNetwork([
      observedConnector(1, stated('online', 91)),
      observedConnector(2, stated('online', 1)),
      observedHost(3, { ...profileOf(1), health: null }),
      observedHost(4, { ...profileOf(2), health: null }),
    ]);
    const [event] = compare(observation).events;
    expect(event?.details).toMatchObject({ only_connector_of: [{ id: 3, name: 'host-3' }] });
    const [other] = compare(observedNetwork([observedHost(1, stated('online', 91)), observedHost(2)])).events;
    expect(other?.details).not.toHaveProperty('only_connector_of');
  });
});

describe('a route', () => {
  const up = (connector: number | null) => ({ state: 'up', connector });
  const dead = (connector: number | null) => ({ state: 'dead', connector });
  const online = stated('online', 1);
  const [one, two] = [observedConnector(1, online), observedConnector(2, online)];
  const gone = (id: number) => observedConnector(id, stated('offline', 1000));
  const using = (connector: number | null) =>
    observedHost(3, { ...online, report: reportOf({ 4: 'direct' }, { [lan]: connector, [lab]: 1 }) });
  const other = observedHost(4, online);

  test.each<[string, StoredObservation[], object | undefined, object | undefined, object | undefined]>([
    ['first use', [one, two, using(1)], undefined, up(1), undefined],
    ['the same use', [one, two, using(1)], up(1), up(1), undefined],
    ['another connector', [one, two, using(2)], up(1), up(2), { type: 'route.failed_over', peer: 2, from: 1, to: 2 }],
    ['no report', [one, two, other], up(2), up(2), undefined],
    [
      'no report, and the last is gone',
      [one, gone(2), other],
      up(2),
      up(1),
      { type: 'route.failed_over', from: 2, to: 1 },
    ],
    ['no connector', [one, two, using(null), other], up(1), dead(1), { type: 'route.dead', from: 1 }],
    ['no connector yet', [one, two, using(null), other], undefined, undefined, undefined],
    ['no connector still', [one, two, using(null), other], dead(1), dead(1), undefined],
    ['a connector again', [one, two, using(2)], dead(1), up(2), { type: 'route.restored', to: 2 }],
    ['the last one again', [one, two, using(1)], dead(1), up(1), { type: 'route.restored', to: 1 }],
    ['an unknown last one', [one, two, using(2)], up(null), up(2), undefined],
  ])('with %s has the state and the event of it', (_what, peers, before, after, event) => {
    const states = { ...(before && { [lan]: before }), [lab]: up(1) };
    const transitions = compare(observedNetwork(peers, states));
    const next = JSON.parse(transitions.routes ?? JSON.stringify(states));
    expect(next).toEqual({ ...(after && { [lan]: after }), [lab]: up(1) });
    const events = transitions.events.filter(({ route }) => route === lan);
    const shown = events.map(({ type, peer, details = {} }) => {
      const { from, to } = details as { from?: { id: number } | null; to?: { id: number } | null };
      return { type, ...(peer && { peer: peer.id }), ...(from && { from: from.id }), ...(to && { to: to.id }) };
    });
    expect(shown).toEqual(event === undefined ? [] : [expect.objectContaining(event)]);
    expect(transitions.subjects.includes(lan)).toBe(event !== undefined);
  });

  test('whose limit is reached keeps its state, and the others change', () => {
    const observation = observedNetwork(
      [one, two, observedHost(3, { ...online, report: reportOf({}, { [lan]: 2, [lab]: 2 }) })],
      {
        ...{ [lan]: up(1), [lab]: up(1) },
      },
    );
    const transitions = compare(observation, (subject) => subject !== lan);
    expect(JSON.parse(transitions.routes ?? '')).toEqual({ [lan]: up(1), [lab]: up(2) });
    expect([typesOf(transitions), transitions.isHeldBack]).toEqual([[['route.failed_over', 2]], true]);
  });

  test('that is no longer a route of the network is forgotten, and what stays is not written again', () => {
    const peers = [one, two, using(1)];
    const states = { [lan]: up(1), [lab]: up(1) };
    expect(compare(observedNetwork(peers, states)).routes).toBeNull();
    const left = compare(observedNetwork(peers, { ...states, '192.168.9.0/24': up(1) }));
    expect(JSON.parse(left.routes ?? '')).toEqual(states);
  });
});
