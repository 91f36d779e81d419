import { expect, test } from 'vitest';
import type { PathSignals } from '../../../src/contract/paths.ts';
import { withDatabase } from '../harness.ts';
import { attemptIn, endpointsIn, hasty, observedAs, type PathPeer, startPaths, startTrying } from './paths-office.ts';

const minute = 60_000;
const ownOf = ({ id }: PathPeer) => `[2001:db8::${id}]:51820`;

test('what a member claims to be its endpoints is given to no one where it may be that of others', async () => {
  const office = await startPaths();
  const { relay, add, plane } = office;
  await add({ endpoint: '[2001:db8::99]:51820' });
  const dynamic = await add();
  await office.state(relay, observedAs('[2001:db8::77]:4711', dynamic));
  const port = new URL(plane.url).port;
  const claims = [
    ...['127.0.0.1:51820', '[::1]:22', '10.77.0.3:51820', '192.168.5.9:51820', `127.0.0.1:${port}`],
    ...['[2001:db8::99]:51820', '[2001:db8::77]:4711', '192.0.2.53:53'],
  ];
  const [one, two] = [office.one, office.two].map((peer) => ({ ...peer, from: '203.0.113.77' }));
  if (!one || !two) return expect.unreachable();
  const own = ['192.168.1.7:51820', ownOf(one)];
  const given = [...own, `203.0.113.77:4${one.id}`];
  // Eight at a time, each with the endpoints that are its own.
  for (const some of [claims.slice(0, 6), claims.slice(2)]) {
    const [, toTwo] = await startTrying({ ...office, one, two }, [
      [...some, ...own],
      [ownOf(two), '192.168.1.8:51820'],
    ]);
    expect(endpointsIn(toTwo)).toEqual(given);
    await office.state(one, { failed: [{ peer: two.id, attempt: attemptIn(toTwo), tried: [] }] });
    plane.clock.advance(minute);
  }
});

test('whatever endpoint a member names, a host is tried where it is observed, and no host at a connector', async () => {
  const { one, relay, add, state, take, plane, network } = await startPaths();
  const second = await add({ peer_type: 'connector', endpoint: '198.51.100.2:51820' });
  const attacker = await add();
  for (const [socket, isTried] of [
    ['203.0.113.99:4711', true],
    ['[2001:db8::99]:4711', true],
    ['198.51.100.2:51820', false],
  ] as const) {
    const two = await add();
    const { token } = attacker;
    await plane.call('PATCH', `/api/networks/${network}/peers/${attacker.id}`, { token, body: { endpoint: socket } });
    await state(one, { candidates: [ownOf(one)], wanted: [two.id] });
    await state(two, { candidates: [] });
    for (const observer of [relay, second]) await state(observer, observedAs(socket, two));
    for (const observer of [relay, second]) await state(observer, observedAs('203.0.113.2:1', one));
    expect([socket, endpointsIn(await take(one))]).toEqual([socket, isTried ? [socket] : []]);
  }
});

test('the control plane’s own sockets are no endpoint of a peer, whatever a connector observes', async () => {
  const office = await startPaths({
    publicUrls: [new URL('https://192.0.2.44'), new URL('http://[2001:db8::44]:8080')],
  });
  const { one, two, relay, state, take, pairs } = office;
  const own = ['192.0.2.44:443', '[2001:db8::44]:8080', '[2001:db8::44]:8081'];
  await state(one, { candidates: own, wanted: [two.id] });
  await state(two, { candidates: [ownOf(two)] });
  await state(relay, observedAs('192.0.2.44:443', one));
  await state(relay, observedAs('203.0.113.3:1', two));
  expect((await pairs())[0]?.state).toBe('trying');
  expect(endpointsIn(await take(two))).toEqual(['[2001:db8::44]:8081']);
});

test('an endpoint that one member alone observes is given to no one', async () => {
  const { one, two, add, relay, state, take, pairs } = await startPaths();
  const hidden = await add({ peer_type: 'connector' });
  const host = await add();
  await state(one, { candidates: [], wanted: [two.id] });
  await state(two, { candidates: [] });
  for (const member of [hidden, host, two]) await state(member, observedAs('192.0.2.1:53', one, two));
  // It did not stand, and the requests of the peer do not come from there.
  await state(relay, { observed: [one, two].map(({ id }) => ({ peer: id, endpoint: '192.0.2.2:53', stood: false })) });
  expect([
    (await pairs()).map(({ state }) => state),
    endpointsIn([...(await take(one)), ...(await take(two))]),
  ]).toEqual([['resting'], []]);
});

test('attempts of a whole network start toward one address a bounded number of times a minute', async () => {
  const office = await startPaths();
  const { add, relay, state, take, plane } = office;
  const target = '2001:db8:66::1';
  const claim = Array.from({ length: 8 }, (_, index) => `[${target}]:${index + 1}`);
  const attackers = [office.one, await add()];
  const others = [office.two];
  for (let count = 0; count < 11; count += 1) others.push(await add());
  let given = 0;
  const attack = async (attacker: PathPeer, peer: PathPeer) => {
    await state(attacker, { candidates: claim, wanted: [peer.id] });
    await state(peer, { candidates: [ownOf(peer)] });
    await state(relay, observedAs(`203.0.113.9:${peer.id}`, attacker, peer));
    const messages = await take(peer);
    given += endpointsIn(messages).filter((endpoint) => endpoint.includes(target)).length;
    const isTried = messages.some(({ kind }) => kind === 'try');
    if (!isTried) return;
    await state(attacker, { failed: [{ peer: peer.id, attempt: attemptIn(messages), tried: [] }] });
  };
  for (const [index, peer] of others.entries()) {
    const attacker = attackers[index % 2];
    if (attacker) await attack(attacker, peer);
    // One of eight endpoints is the one that connectors observe.
    if (index < 9) expect(given).toBe(7 * (index + 1));
  }
  expect(given).toBe(64);
  plane.clock.advance(minute);
  const [attacker, peer] = [attackers[1], others[8]];
  if (attacker && peer) await attack(attacker, peer);
  expect(given).toBe(71);
});

test('a host tries few peers at once, and keeps few pairs', async () => {
  const { one, two, add, state, pairs, plane } = await startPaths();
  const others = [two];
  for (let count = 0; count < 34; count += 1) others.push(await add());
  const ids = others.map(({ id }) => id);
  await state(one, { candidates: [], wanted: ids.slice(0, 32) });
  expect(await pairs()).toHaveLength(8);
  // The wish of another host counts too.
  const last = others.at(-1);
  if (last) await state(last, { candidates: [], wanted: [one.id] });
  expect(await pairs()).toHaveLength(8);
  await withDatabase(plane.dataDir, async (db) => {
    const [pair] = await pairs();
    if (pair === undefined) return expect.unreachable();
    const at = plane.clock.now().toISOString();
    await db.deleteFrom('peer_pairs').execute();
    const rows = ids.slice(0, 31).map((b) => ({ ...pair, b, state: 'direct' as const, at }));
    await db.insertInto('peer_pairs').values(rows).execute();
  });
  await state(one, { wanted: ids.slice(31, 33) });
  expect(await pairs()).toHaveLength(32);
});

test('a host states facts as often as it may, and then gets a 429', async () => {
  const { one, two, signal, plane } = await startPaths({ limits: { peerReports: 3 } });
  const statuses: number[] = [];
  for (let count = 0; count < 5; count += 1) statuses.push((await signal(one, {})).status);
  expect([...statuses, (await signal(two, {})).status]).toEqual([204, 204, 204, 429, 429, 204]);
  const refused = await signal(one, {});
  expect([refused.headers.get('retry-after'), refused.body.message]).toEqual([
    '1',
    'too many statements about paths of this peer; try again in 1 s',
  ]);
  plane.clock.advance(1000);
  expect([(await signal(one, {})).status, (await signal(one, {})).status]).toEqual([204, 429]);
});

test('endpoints that change all the time start no attempt sooner than in five seconds', async () => {
  const office = await startPaths();
  const { one, two, state, take, plane } = office;
  const attempt = attemptIn((await startTrying(office))[0]);
  await state(one, { failed: [{ peer: two.id, attempt, tried: [] }] });
  const flap = async (port: number) => {
    await state(one, { candidates: [`192.168.1.7:${port}`], wanted: [two.id] });
    return (await take(two)).length;
  };
  expect([await flap(1), await flap(2)]).toEqual([0, 0]);
  plane.clock.advance(4_999);
  expect(await flap(3)).toBe(0);
  plane.clock.advance(1);
  expect([await flap(4), await flap(5)]).toEqual([1, 0]);
});

test.each<[string, (port: number, peer: number) => PathSignals]>([
  ['endpoints that change', (port) => ({ candidates: [`192.168.1.7:${port}`] })],
  ['moves', (_, peer) => ({ candidates: [], ended: [{ peer, why: 'moved' }] })],
])('with %s all the time, attempts begin later and later', async (_, signalsOf) => {
  const office = await startPaths();
  const { one, two, state, take, plane } = office;
  let attempt = attemptIn((await startTrying(office))[0]);
  for (const [port, seconds] of [5, 5, 10, 20].entries()) {
    await state(one, { failed: [{ peer: two.id, attempt, tried: [] }] });
    plane.clock.advance((seconds - 1) * 1000);
    await state(one, { ...signalsOf(port + 1, two.id), wanted: [two.id] });
    expect([seconds, await take(two)]).toEqual([seconds, []]);
    plane.clock.advance(1000);
    attempt = attemptIn((await startTrying(office, [[`192.168.1.9:${port + 1}`], []]))[0]);
  }
});

test('attempts that others begin leave room for those that a host wants', async () => {
  const { one, two, add, state, pairs } = await startPaths();
  for (let count = 0; count < 8; count += 1) await state(await add(), { candidates: [], wanted: [one.id] });
  expect(await pairs()).toHaveLength(4);
  const wanted = [two.id];
  for (let count = 0; count < 4; count += 1) wanted.push((await add()).id);
  await state(one, { candidates: [], wanted });
  const begun = (await pairs()).filter(({ data }) => JSON.parse(data).by === one.id);
  expect(begun.map(({ b }) => b)).toEqual(wanted.slice(0, 4));
});

test('a host that takes part no longer is tried at no endpoint that it stated before', async () => {
  const { one, two, relay, state, take, plane, untilPairs } = await startPaths({ healthTimes: hasty });
  await state(two, { candidates: [ownOf(two)] });
  plane.clock.advance(20_001);
  await state(one, { candidates: [ownOf(one)], wanted: [two.id] });
  await state(relay, observedAs('203.0.113.3:1', one, two));
  await untilPairs(([pair]) => pair?.state === 'resting');
  expect([await take(one), endpointsIn(await take(two))]).toEqual([[], []]);
});

test('a stale id, an id of another network, and the own id are ignored, and the rest counts', async () => {
  const { one, two, add, state, pairs, plane, token, network } = await startPaths();
  const gone = await add();
  await plane.call('DELETE', `/api/networks/${network}/peers/${gone.id}`, { token });
  const suspended = await add();
  const body = { suspended: true };
  await plane.call('PATCH', `/api/networks/${network}/peers/${suspended.id}`, { token, body });
  const strange = [gone.id, suspended.id, one.id, 999_999];
  await state(one, {
    candidates: [],
    wanted: [...strange, two.id],
    observed: strange.map((peer) => ({ peer, endpoint: '192.0.2.1:1', stood: true })),
    proven: strange.map((peer) => ({ peer, attempt: 1 })),
    failed: strange.map((peer) => ({ peer, attempt: 1, tried: [] })),
    ended: strange.map((peer) => ({ peer, why: 'lost' as const })),
  });
  expect((await pairs()).map(({ a, b }) => [a, b])).toEqual([[one.id, two.id]]);
  expect(gone.id).toBeGreaterThan(0);
});

test('a host that was removed or suspended gets no further, nor does a host of another network', async () => {
  const { one, two, add, signal, plane, token, network } = await startPaths();
  await plane.call('DELETE', `/api/networks/${network}/peers/${one.id}`, { token });
  const body = { suspended: true };
  await plane.call('PATCH', `/api/networks/${network}/peers/${two.id}`, { token, body });
  expect([(await signal(one, {})).status, (await signal(two, {})).status]).toEqual([401, 403]);
  expect((await signal(await add(), {}, network + 1)).status).toBe(404);
});

test('a peer that leaves the map while endpoints are gathered, or gets an endpoint, is not tried', async () => {
  for (const body of [{ suspended: true }, { endpoint: '198.51.100.9:51820' }]) {
    const { one, two, relay, state, take, plane, token, network, pairs } = await startPaths();
    await state(one, { candidates: [], wanted: [two.id] });
    await state(two, { candidates: [] });
    await state(relay, observedAs('203.0.113.3:1', two));
    await plane.call('PATCH', `/api/networks/${network}/peers/${two.id}`, { token, body });
    await state(relay, observedAs('203.0.113.2:1', one));
    expect([(await pairs()).map(({ state }) => state), endpointsIn(await take(one))]).toEqual([['resting'], []]);
  }
});

test('peers with an endpoint, and devices with a fixed profile, are not tried', async () => {
  const { one, relay, add, state, pairs } = await startPaths();
  const device = await add({ peer_type: 'admin_device', profile: { connector: relay.id, routes: [] } });
  await state(one, { candidates: [], wanted: [relay.id, device.id] });
  await state(relay, { candidates: [], wanted: [one.id] });
  expect(await pairs()).toEqual([]);
});

test('proofs and failures of another attempt, and ends of no path, change nothing and reach no one', async () => {
  const office = await startPaths();
  const { one, two, add, state, take, pairs } = office;
  const stranger = await add();
  const attempt = attemptIn((await startTrying(office))[0]);
  const before = await pairs();
  const signals: PathSignals[] = [
    { proven: [{ peer: two.id, attempt: attempt + 1 }] },
    { failed: [{ peer: two.id, attempt: attempt + 1, tried: [] }] },
    { proven: [{ peer: stranger.id, attempt }], ended: [{ peer: stranger.id, why: 'lost' }] },
  ];
  for (const each of signals) await state(one, each);
  // No one else speaks for the pair.
  await state(stranger, { proven: [{ peer: two.id, attempt }], failed: [{ peer: two.id, attempt, tried: [] }] });
  expect(await pairs()).toEqual(before);
  // One of both does not prove it twice.
  for (let count = 0; count < 2; count += 1) await state(one, { proven: [{ peer: two.id, attempt }] });
  expect([await take(one), await take(two), await take(stranger)]).toEqual([[], [], []]);
});

test('text that is no endpoint is not stored', async () => {
  const { one, two, relay, state, plane } = await startPaths();
  const texts = ['host.example:1', 'x', '<script>', '192.0.2.1:1\n', '1'.repeat(64)];
  await state(one, { candidates: [...texts, '[2001:DB8::1]:1'] });
  for (const endpoint of texts) await state(relay, observedAs(endpoint, two));
  const rows = await withDatabase(plane.dataDir, (db) => db.selectFrom('peer_endpoints').selectAll().execute());
  expect(rows.map(({ own, endpoint }) => [own, endpoint])).toEqual([['["[2001:db8::1]:1"]', null]]);
});

test.each<[string, object]>([
  ['wanted', { wanted: Array.from({ length: 33 }, (_, index) => index + 1) }],
  ['candidates', { candidates: Array.from({ length: 9 }, (_, index) => `192.0.2.1:${index + 1}`) }],
  ['candidates.0', { candidates: ['x'.repeat(65)] }],
  ['observed.0.stood', { observed: [{ peer: 1, endpoint: '192.0.2.1:1' }] }],
  ['proven.0.attempt', { proven: [{ peer: 1, attempt: 0 }] }],
  ['failed.0.tried.0.outcome', { failed: [{ peer: 1, attempt: 1, tried: [{ endpoint: 'x', outcome: 'later' }] }] }],
  ['ended.0.why', { ended: [{ peer: 1, why: 'tired' }] }],
])('a body that breaks a rule for %s is a 422', async (field, body) => {
  const { one, signal } = await startPaths();
  const { status, body: refusal } = await signal(one, body as PathSignals);
  expect([status, Object.keys(refusal.errors)]).toEqual([422, [field.split('.')[0]]]);
});
