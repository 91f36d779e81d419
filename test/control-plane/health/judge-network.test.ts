import { describe, expect, test } from 'vitest';
import { PathState } from '../../../src/contract/health.ts';
import { lostAtOf, type StoredObservation } from '../../../src/control-plane/health/observe.ts';
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

const judge = (peers: readonly StoredObservation[], routes = {}) => judgeObserved(observedNetwork(peers, routes));
const silent = { last_seen: secondsAgo(1000), announced: 'offline' } as const;

describe('a route', () => {
  test('is judged by the reports of hosts that use it, and not by those of its connectors', () => {
    const connectors = [
      observedConnector(1, { report: reportOf({}, { [lan]: null }) }),
      observedConnector(2, { report: reportOf({}, { [lan]: 1 }) }),
    ];
    const hosts = [observedHost(3, { report: reportOf({ 2: 'direct' }, { [lan]: 2 }) }), observedHost(4)];
    const { routes } = judge([...connectors, ...hosts]);
    expect(routes.get(lan)).toMatchObject({ state: 'up', connector: 2, standby: [1], choices: [2] });
    expect(routes.get(lab)).toMatchObject({ state: 'up', connector: 1, choices: [] });
  });

  test('is judged by connectors that do not serve it too, and by no host that is silent', () => {
    const limited = { peer: { routes: JSON.stringify([lab]) }, report: reportOf({ 1: 'direct' }, { [lan]: 1 }) };
    const gone = observedHost(3, { health: silent, report: reportOf({ 1: 'direct' }, { [lan]: null }) });
    const { routes } = judge([observedConnector(1), observedConnector(2, limited), gone]);
    expect(routes.get(lan)).toMatchObject({ connector: 1, standby: [], choices: [1] });
    expect(routes.get(lab)).toMatchObject({ connector: 1, standby: [2] });
  });

  test.each(PathState.options.map((path) => [path, path === 'direct' || path === 'relayed'] as const))(
    'whose only host finds no connector is dead where that host has a path that is %s: %s',
    (path, isDead) => {
      const host = observedHost(3, { report: reportOf({ 2: path }, { [lan]: null }) });
      const { routes } = judge([observedConnector(1), observedHost(2), host]);
      expect(routes.get(lan)).toMatchObject({ state: isDead ? 'dead' : 'up', choices: isDead ? [null] : [] });
    },
  );

  test('of which two hosts find no connector is dead, whatever else they reach', () => {
    const [one, two] = [3, 4].map((id) => observedHost(id, { report: reportOf({ 2: 'down' }, { [lan]: null }) }));
    const peers = [observedConnector(1), observedHost(2), one, two].flatMap((each) => each ?? []);
    expect(judge(peers).routes.get(lan)).toMatchObject({ state: 'dead', choices: [null, null] });
  });

  test.each([
    [{ 1: 'never', 2: 'never' }, 'unknown'],
    [{ 1: 'never', 2: 'down' }, 'up'],
    [{ 1: 'down', 2: 'never' }, 'up'],
    [{ 1: 'never', 3: 'down' }, 'unknown'],
    [{ 3: 'never' }, 'up'],
    [{}, 'up'],
  ] as const)('whose only host has the paths %j is %s: it may never have reached its connectors', (paths, state) => {
    const host = observedHost(4, { report: reportOf(paths, { [lan]: null }) });
    const { routes } = judge([observedConnector(1), observedConnector(2), observedHost(3), host]);
    expect(routes.get(lan)?.state).toBe(state);
  });

  test('is unserved since its host said so, and each route for itself', () => {
    const unserved = [
      { route: lan, since: secondsAgo(1.5) },
      { route: lab, since: secondsAgo(2) },
    ];
    const report = { ...reportOf({ 2: 'direct' }, { [lan]: null, [lab]: null }), unserved };
    const up = { state: 'up', connector: 1 };
    const peers = [observedConnector(1), observedHost(2), observedHost(3, { report })];
    const { routes } = judge(peers, { [lan]: up, [lab]: up });
    expect([routes.get(lan)?.state, routes.get(lan)?.deadIn]).toEqual(['unknown', 0.5]);
    expect(routes.get(lab)?.state).toBe('dead');
    // A route that is not stated up is still being set up.
    expect(judge(peers, { [lan]: { ...up, state: 'dead' } }).routes.get(lan)?.state).toBe('dead');
  });

  test('leaves out the connector whose LAN does not answer at this route, and that took it out of service', () => {
    const isDown = { routes: [{ route: lan, connector: 1, lan: 'down' as const }] };
    const isUp = { routes: [{ route: lan, connector: 2, lan: 'up' as const }] };
    const withdrawn = { peer: { withdrawn: JSON.stringify([lab]) } };
    const peers = [observedConnector(1, { report: isDown }), observedConnector(2, { report: isUp, ...withdrawn })];
    const { routes } = judge(peers);
    expect(routes.get(lan)).toMatchObject({ connector: 2, standby: [] });
    expect(routes.get(lab)).toMatchObject({ connector: 1, standby: [] });
  });

  test('has its connectors in the order of rank: by priority, then the one that serves longest', () => {
    const peers = [
      observedConnector(1, { peer: { serving_since: secondsAgo(10) } }),
      observedConnector(2, { peer: { serving_since: secondsAgo(30) } }),
      observedConnector(3, { peer: { serving_since: secondsAgo(5), priority: 7 } }),
    ];
    expect(judge(peers).routes.get(lan)).toMatchObject({ connector: 3, standby: [2, 1] });
  });

  test('names the connectors that never answered: without a request, an event, or a host that reaches them', () => {
    const never = { health: { last_seen: null } };
    const peers = [
      observedConnector(1),
      observedConnector(2, never),
      observedConnector(3, never),
      observedConnector(4, { health: { last_seen: null, announced: 'offline' } }),
      observedHost(5, { report: reportOf({ 2: 'direct', 3: 'never' }) }),
    ];
    const { answered, routes } = judge(peers);
    expect([...answered]).toEqual([1, 2, 4, 5]);
    expect(routes.get(lan)).toMatchObject({ neverAnswered: [3], standby: [2] });
  });
});

describe('a host whose connection was lost', () => {
  const lostHost = (last_seen: string) =>
    observedHost(1, { health: { last_seen, lost_at: secondsAgo(20), announced: 'online' } });
  const probing = (answered: boolean, at: string) => ({ probes: [{ peer: 1, answered, at }] });

  test.each([
    ['is offline once a probe after it got no answer', secondsAgo(30), probing(false, secondsAgo(10)), 'offline', true],
    ['is online where a probe got an answer', secondsAgo(30), probing(true, secondsAgo(10)), 'online', true],
    ['is online without a probe', secondsAgo(30), {}, 'online', true],
    ['is not judged by a probe of the future', secondsAgo(30), probing(false, secondsAgo(-1)), 'online', true],
    ['is judged by a probe of this moment', secondsAgo(30), probing(false, secondsAgo(0)), 'offline', true],
    ['is connected after a later request', secondsAgo(19), probing(false, secondsAgo(10)), 'online', false],
    ['is not connected by a request of the same instant', secondsAgo(20), {}, 'online', true],
  ] as const)('%s', (_what, last, report, state, isLost) => {
    const { peers } = judge([lostHost(last), observedHost(2, { report })]);
    expect(peers.get(1)).toMatchObject({ state, isLost });
  });

  test('has the time of the loss until it made a later request', () => {
    const [early, late] = [secondsAgo(30), secondsAgo(20)];
    const of = (last_seen: string | null, lost_at: string | null) =>
      lostAtOf(observedHost(1, { health: { last_seen, lost_at } }).health);
    expect([of(early, late), of(late, late), of(null, late), of(late, early), of(late, null)]).toEqual([
      ...[late, late, late],
      ...[null, null],
    ]);
    expect(lostAtOf(undefined)).toBeNull();
  });
});

test('paths to peers that left the network are no observation', () => {
  const { peers } = judge([
    observedHost(1, { health: null }),
    observedHost(2, { report: reportOf({ 1: 'direct', 9: 'down' }) }),
  ]);
  expect([...peers.keys()]).toEqual([1, 2]);
  expect(peers.get(1)).toMatchObject({ state: 'online', isHeard: false, reachableBy: 1, witnesses: 1 });
});
