import { expect, test } from 'vitest';
import { withDatabase } from '../harness.ts';
import { attemptIn, endpointsIn, hasty, observedAs, startPaths, startTrying } from './paths-office.ts';

const minute = 60_000;

test('two hosts behind NAT get each other’s endpoints, try at the same moment, switch and return together', async () => {
  const office = await startPaths();
  const { one, two, relay, add, state, take, etagOf, pairs } = office;
  const third = await add();
  const before = await etagOf(one);
  await state(one, { candidates: ['192.168.1.7:51820'], wanted: [two.id] });
  expect(await take(two)).toEqual([{ kind: 'candidates', data: { peers: [one.id] } }]);
  // Both send a packet to the connectors before they state their endpoints.
  expect(await take(relay)).toEqual([]);
  await state(two, { candidates: ['192.168.1.8:51820'] });
  expect(await take(relay)).toEqual([{ kind: 'observe', data: { peers: [one.id, two.id] } }]);
  expect([await take(one), await take(two)]).toEqual([[], []]);
  await state(relay, {
    observed: [
      { peer: one.id, endpoint: '203.0.113.2:4711', stood: false },
      { peer: two.id, endpoint: '203.0.113.3:4712', stood: true },
    ],
  });
  const tries = [await take(one), await take(two)];
  const attempt = attemptIn(tries[0] ?? []);
  const common = { attempt, kinds: ['observed'], start_in_ms: 500, nats: { own: 'unknown', peer: 'unknown' } };
  const [ofOne, ofTwo] = [['203.0.113.2:4711'], ['203.0.113.3:4712']];
  expect(tries).toEqual([
    [{ kind: 'try', data: { ...common, peer: two.id, endpoints: ofTwo, observed: ofOne, first: true } }],
    [{ kind: 'try', data: { ...common, peer: one.id, endpoints: ofOne, observed: ofTwo, first: false } }],
  ]);
  await state(two, { proven: [{ peer: one.id, attempt }] });
  expect([await take(one), await take(two)]).toEqual([[], []]);
  await state(one, { proven: [{ peer: two.id, attempt }] });
  expect([await take(one), await take(two)]).toEqual(
    [two, one].map(({ id }) => [{ kind: 'switch', data: { peer: id, attempt, switch_in_ms: 300 } }]),
  );
  await state(one, { ended: [{ peer: two.id, why: 'idle' }] });
  expect([await take(one), await take(two)]).toEqual([[], [{ kind: 'return', data: { peer: one.id } }]]);
  expect((await pairs()).map((pair) => pair.state)).toEqual(['resting']);
  // No other host learns of it, and the map is the same.
  expect([await take(third), await take(relay), await etagOf(one)]).toEqual([[], [], before]);
});

test('both peers of a LAN get private addresses, and hosts elsewhere do not', async () => {
  const office = await startPaths();
  const [one, two] = [office.one, office.two].map((peer) => ({ ...peer, from: '203.0.113.77' }));
  if (!one || !two) return expect.unreachable();
  const tries = await startTrying({ ...office, one, two }, [['192.168.1.7:51820'], ['192.168.1.8:51820']]);
  expect(tries.map(endpointsIn)).toEqual([
    ['192.168.1.8:51820', `203.0.113.77:4${two.id}`],
    ['192.168.1.7:51820', `203.0.113.77:4${one.id}`],
  ]);
});

test('a host whose own endpoints are out of date is requested to state them', async () => {
  const { one, two, relay, state, take } = await startPaths();
  await state(one, { wanted: [two.id] });
  expect(await take(one)).toEqual([{ kind: 'candidates', data: { peers: [two.id] } }]);
  await state(two, { candidates: [] });
  await state(relay, observedAs('203.0.113.2:4711', one));
  await state(relay, observedAs('203.0.113.3:4711', two));
  expect(await take(one)).toEqual([]);
  await state(one, { candidates: [] });
  // Both have sent a packet to the connector only now. What it observed before may be the port of a flow that is gone.
  expect([await take(one), await take(relay)]).toEqual([[], [{ kind: 'observe', data: { peers: [one.id, two.id] } }]]);
  await state(relay, {
    observed: [...observedAs('203.0.113.2:5', one).observed, ...observedAs('203.0.113.3:5', two).observed],
  });
  expect(endpointsIn(await take(one))).toEqual(['203.0.113.3:5']);
});

test('a gathering awaits a host whose connection just died, and then one connector', async () => {
  const office = await startPaths({ healthTimes: { ...hasty, longestGatherMs: 1e9 } });
  const { one, two, relay, state, take, pairs, add, untilPairs } = office;
  await add({ peer_type: 'connector', endpoint: '198.51.100.5:51820' });
  const isLate = (data = '{}') => JSON.parse(data).isLate === true;
  await state(one, { candidates: [], wanted: [two.id] });
  await untilPairs(([pair]) => isLate(pair?.data));
  await state(two, { candidates: [] });
  expect((await pairs()).map((pair) => pair.state)).toEqual(['gathering']);
  await state(relay, observedAs('203.0.113.2:2', one));
  await state(relay, observedAs('203.0.113.3:2', two));
  expect(endpointsIn(await take(one))).toEqual(['203.0.113.3:2']);
});

test('at the end of a gathering an attempt starts with what is stated', async () => {
  const office = await startPaths({ healthTimes: hasty });
  const { one, two, relay, state, take, untilPairs, plane } = office;
  const own = ['[2001:db8::1]:51820', '[2001:db8::2]:51820'] as const;
  // A reply that was late for the attempt before is good enough then.
  await state(two, { candidates: [own[1]] });
  plane.clock.advance(20_000);
  await state(one, { candidates: [own[0]], wanted: [two.id] });
  await untilPairs(([pair]) => pair?.state === 'trying');
  expect([endpointsIn(await take(one)), endpointsIn(await take(two))]).toEqual([[own[1]], [own[0]]]);
  expect(await take(relay)).toEqual([]);
});

test('with a host that takes no messages no attempt starts, and its wait goes on', async () => {
  const { one, two, relay, state, take, untilPairs, wait, plane, token, network } = await startPaths({
    healthTimes: hasty,
  });
  const waiting = wait(two, ['probe']);
  await state(one, { candidates: ['[2001:db8::1]:51820'], wanted: [two.id] });
  await state(relay, observedAs('203.0.113.3:4711', one, two));
  await untilPairs(([pair]) => pair?.state === 'resting');
  expect(await take(one)).toEqual([]);
  const change = { token, body: { description: 'another' } };
  await plane.call('PATCH', `/api/networks/${network}`, change);
  // It ends with the change of the map.
  expect(await waiting).toEqual([]);
  plane.clock.advance(5000);
  await state(two, { candidates: ['[2001:db8::2]:51820'], wanted: [one.id] });
  await untilPairs(([pair]) => pair?.state === 'gathering');
});

test('a host that takes no paths ends an attempt, the other one learns why, and it may take one soon again', async () => {
  const { one, two, relay, state, take, pairs, untilPairs, plane } = await startPaths();
  // A statement of shortly before counts otherwise.
  await state(two, { candidates: ['[2001:db8::2]:51820'] });
  await state(one, { candidates: ['[2001:db8::1]:51820'], wanted: [two.id] });
  expect(await take(two)).toMatchObject([{ kind: 'candidates' }]);
  await state(two, { declined: [one.id] });
  await untilPairs(([pair]) => pair?.state === 'resting');
  expect(await take(one)).toMatchObject([{ kind: 'try', data: { peer: two.id, endpoints: [], declined: true } }]);
  expect(await take(two)).toEqual([]);
  // No attempt is under way any more.
  await state(two, { declined: [one.id] });
  await state(relay, observedAs('203.0.113.3:4711', one, two));
  expect(await take(one)).toEqual([]);
  // Each time it is silent, the next attempt comes later.
  const starts: number[] = [];
  for (let second = 0; second < 600; second += 1) {
    plane.clock.advance(1000);
    const [before] = await pairs();
    await state(two, { declined: [one.id], wanted: [one.id] });
    const [after] = await pairs();
    if (before?.attempt !== after?.attempt) starts.push(second);
  }
  expect(starts.length).toBeGreaterThan(2);
  expect(starts.length).toBeLessThan(15);
});

test('after a failure a pair rests, for longer each time, until endpoints of either change', async () => {
  const office = await startPaths();
  const { one, two, state, take, plane } = office;
  const wants = async () => {
    await state(two, { wanted: [one.id] });
    return (await take(one)).length > 0;
  };
  const fail = async () => {
    const [ofOne] = await startTrying(office);
    const attempt = attemptIn(ofOne);
    await state(one, { failed: [{ peer: two.id, attempt: attempt + 1, tried: [] }] });
    const tried = [{ endpoint: '203.0.113.3:4711', outcome: 'no-answer' as const }];
    await state(one, { failed: [{ peer: two.id, attempt, tried }] });
    const [pair] = await office.pairs();
    expect(JSON.parse(pair?.data ?? '')).toMatchObject({ tried: { [one.id]: tried }, nats: ['unknown', 'unknown'] });
  };
  await fail();
  plane.clock.advance(23_000);
  expect(await wants()).toBe(false);
  plane.clock.advance(14_000);
  await fail();
  plane.clock.advance(47_000);
  expect(await wants()).toBe(false);
  await state(two, { candidates: ['192.168.1.9:51820'] });
  expect(await wants()).toBe(true);
});

test.each([
  ['its own endpoints', { candidates: ['192.168.1.9:51820'] }, '203.0.113.2'],
  ['its address', { candidates: [] }, '203.0.113.99'],
  ['nothing', { candidates: [] }, '203.0.113.2'],
])('a host that changes %s may try again soon', async (what, signals, from) => {
  const office = await startPaths();
  const { one, two, state, take, plane } = office;
  const attempt = attemptIn((await startTrying(office))[0]);
  await state(two, { failed: [{ peer: one.id, attempt, tried: [] }] });
  plane.clock.advance(6_000);
  await state({ ...one, from }, signals);
  await state(one, { wanted: [two.id] });
  expect((await take(two)).length > 0).toBe(what !== 'nothing');
});

test('an endpoint that a connector sees change lets a pair try again soon', async () => {
  const office = await startPaths();
  const { one, two, relay, state, take, plane } = office;
  const attempt = attemptIn((await startTrying(office))[0]);
  await state(two, { failed: [{ peer: one.id, attempt, tried: [] }] });
  plane.clock.advance(6_000);
  await state(relay, observedAs('203.0.113.3:999', two));
  await state(one, { wanted: [two.id] });
  expect(await take(two)).toEqual([{ kind: 'candidates', data: { peers: [one.id] } }]);
});

test('a path that stood for a while may be tried at once, and a false start may not', async () => {
  for (const [why, usedMs, isAtOnce] of [
    ['lost', minute, true],
    ['moved', minute, true],
    ['idle', minute, true],
    ['idle', 1000, false],
    ['lost', 1000, false],
  ] as const) {
    const office = await startPaths();
    const { one, two, state, take, plane } = office;
    const attempt = attemptIn((await startTrying(office))[0]);
    for (const [host, peer] of [
      [one, two],
      [two, one],
    ] as const)
      await state(host, { proven: [{ peer: peer.id, attempt }] });
    await take(two);
    plane.clock.advance(usedMs);
    await state(one, { candidates: [], ended: [{ peer: two.id, why }], wanted: [two.id] });
    const again = isAtOnce ? [{ kind: 'candidates', data: { peers: [one.id] } }] : [];
    expect([why, usedMs, await take(two)]).toEqual([
      why,
      usedMs,
      [{ kind: 'return', data: { peer: one.id } }, ...again],
    ]);
  }
});

test('a path that a new port of a NAT ended begins again soon, at the new endpoint', async () => {
  const office = await startPaths();
  const { one, two, relay, state, take, plane } = office;
  const attempt = attemptIn((await startTrying(office))[0]);
  await state(one, { proven: [{ peer: two.id, attempt }] });
  await state(two, { proven: [{ peer: one.id, attempt }] });
  await take(two);
  await take(relay);
  plane.clock.advance(6_000);
  await state(one, { ended: [{ peer: two.id, why: 'lost' }], wanted: [two.id] });
  expect(await take(two)).toEqual([{ kind: 'return', data: { peer: one.id } }]);
  expect(await take(relay)).toEqual([{ kind: 'observe', data: { peers: [one.id, two.id] } }]);
  await state(relay, observedAs(`${one.from}:5999`, one));
  await state(one, { wanted: [two.id] });
  expect(await take(two)).toEqual([{ kind: 'candidates', data: { peers: [one.id] } }]);
});

test('a host that wants a path that it had has lost it', async () => {
  const office = await startPaths();
  const { one, two, state, take, plane } = office;
  const attempt = attemptIn((await startTrying(office))[0]);
  for (const [host, peer] of [
    [one, two],
    [two, one],
  ] as const)
    await state(host, { proven: [{ peer: peer.id, attempt }] });
  await take(one);
  await state(two, { wanted: [one.id] });
  expect(await take(one)).toEqual([]);
  plane.clock.advance(minute);
  await state(two, { candidates: [], wanted: [one.id] });
  expect((await take(one)).map(({ kind }) => kind)).toEqual(['return', 'candidates']);
});

test('an attempt whose host or process stopped is over: late facts do not continue it', async () => {
  const office = await startPaths();
  const { one, two, relay, state, take, plane, pairs } = office;
  await state(one, { candidates: [], wanted: [two.id] });
  plane.clock.advance(20_000);
  await state(two, { candidates: [] });
  await state(relay, observedAs('203.0.113.3:1', one, two));
  expect([(await pairs())[0]?.state, endpointsIn(await take(one))]).toEqual(['gathering', []]);
  plane.clock.advance(minute);
  const attempt = attemptIn((await startTrying(office))[0]);
  await state(one, { proven: [{ peer: two.id, attempt }] });
  plane.clock.advance(20_000);
  await state(two, { proven: [{ peer: one.id, attempt }] });
  expect([(await pairs())[0]?.state, await take(one)]).toEqual(['trying', []]);
});

test('hosts whose NATs use a port for each destination rest for long, and try in the same LAN alone', async () => {
  const office = await startPaths();
  const { one, two, relay, add, state, take, pairs, plane } = office;
  const second = await add({ peer_type: 'connector', endpoint: '198.51.100.2:51820' });
  const gather = async () => {
    await state(one, { candidates: ['192.168.1.7:51820'], wanted: [two.id] });
    await state(two, { candidates: ['192.168.1.8:51820'] });
    for (const [index, peer] of [one, two].entries())
      for (const [port, connector] of [relay, second].entries())
        await state(connector, observedAs(`203.0.113.${50 + index}:${1000 + port}`, peer));
  };
  await gather();
  const [pair] = await pairs();
  expect(pair).toMatchObject({ state: 'resting' });
  expect(JSON.parse(pair?.data ?? '')).toMatchObject({ nats: ['symmetric', 'symmetric'] });
  expect(Date.parse(pair?.next_at ?? '') - plane.clock.now().getTime()).toBe(30 * minute);
  const both = [await take(one), await take(two)];
  const nats = { own: 'symmetric', peer: 'symmetric' };
  for (const [index, messages] of both.entries()) {
    const observed = [1000, 1001].map((port) => `203.0.113.${50 + index}:${port}`);
    const data = expect.objectContaining({ endpoints: [], observed, nats });
    expect(messages).toContainEqual({ kind: 'try', data });
  }
  plane.clock.advance(30 * minute);
  for (const peer of [one, two]) Object.assign(peer, { from: '203.0.113.77' });
  await gather();
  expect([endpointsIn(await take(one)), endpointsIn(await take(two))]).toEqual([
    ['192.168.1.8:51820'],
    ['192.168.1.7:51820'],
  ]);
});

test('with a second connector, a NAT of one known port waits for what that one sees', async () => {
  const { one, two, relay, add, state, take } = await startPaths();
  const second = await add({ peer_type: 'connector', endpoint: '198.51.100.2:51820' });
  await state(one, { candidates: [], wanted: [two.id] });
  await state(two, { candidates: [] });
  await state(second, observedAs('203.0.113.2:1', one));
  await state(relay, { ...observedAs('203.0.113.2:2', one) });
  await state(relay, { ...observedAs('203.0.113.3:3', two) });
  expect(await take(one)).toEqual([]);
  await state(second, observedAs('203.0.113.3:3', two));
  expect(endpointsIn(await take(one))).toEqual(['203.0.113.3:3']);
});

test('at most three connectors observe, in service and with a public endpoint, the relay first', async () => {
  const { one, two, relay, add, state, take, plane, token, network } = await startPaths();
  const connector = (endpoint?: string) => add({ peer_type: 'connector', ...(endpoint && { endpoint }) });
  const hidden = [await connector(), await connector('192.168.7.1:51820'), await connector('198.51.100.3:51820')];
  const body = { suspended: true };
  await plane.call('PATCH', `/api/networks/${network}/peers/${hidden[2]?.id}`, { token, body });
  const open = [relay];
  for (const host of ['198.51.100.5', 'edge.example.net', '198.51.100.7']) open.push(await connector(`${host}:51820`));
  await state(one, { candidates: [], wanted: [two.id] });
  await state(two, { candidates: [] });
  const asked: number[] = [];
  for (const peer of [...hidden.slice(0, 2), ...open]) if ((await take(peer)).length > 0) asked.push(peer.id);
  expect(asked).toEqual(open.slice(0, 3).map(({ id }) => id));
});

test('messages come with a change of the map, so that changes one after the other delay none', async () => {
  const office = await startPaths();
  const { plane, one, two, relay, network, token, etagOf, state } = office;
  const etag = await etagOf(two);
  await state(one, { candidates: [], wanted: [two.id] });
  await plane.call('PATCH', `/api/networks/${network}/peers/${relay.id}`, { token, body: { name: 'edge' } });
  const readBy = (receipts: object) =>
    plane.call('GET', `/api/networks/${network}`, {
      token: two.token,
      headers: { 'if-none-match': etag, 'a-im': 'cpn-delta', 'peer-messages': 'candidates', ...receipts },
    });
  // A host of an earlier version reads none with changes.
  expect((await readBy({})).body.data.messages).toBeUndefined();
  const { status, body } = await readBy({ 'peer-messages-receipt': 'none' });
  expect([status, body.data.peers.length]).toEqual([226, 1]);
  expect(body.data.messages).toEqual([{ kind: 'candidates', data: { peers: [one.id] } }]);
  expect((await readBy({ 'peer-messages-receipt': body.data.receipt })).body.data.messages).toBeUndefined();
});

test('what a connector observed before an attempt is void as soon as one observes the peer again', async () => {
  const { one, two, relay, add, state, take, plane, untilPairs } = await startPaths({
    // Long enough for the statements below.
    healthTimes: { ...hasty, gatherMs: 1_500 },
  });
  const other = await add({ peer_type: 'connector', endpoint: '198.51.100.5:51820' });
  await state(other, observedAs('203.0.113.2:1', one));
  await state(other, observedAs('203.0.113.3:1', two));
  plane.clock.advance(minute);
  await state(one, { candidates: [], wanted: [two.id] });
  await state(two, { candidates: [] });
  await state(relay, observedAs('203.0.113.2:2', one));
  await state(relay, observedAs('203.0.113.3:2', two));
  // The other connector does not reply: the time for statements ends.
  await untilPairs(([pair]) => pair?.state === 'trying');
  expect(endpointsIn(await take(one))).toEqual(['203.0.113.3:2']);
});

test('without a connector that observes, hosts try in the LAN and over IPv6 alone', async () => {
  const { one, two, relay, state, take, plane, token, network } = await startPaths();
  const body = { endpoint: '192.168.7.1:51820' };
  await plane.call('PATCH', `/api/networks/${network}/peers/${relay.id}`, { token, body });
  await state(one, { candidates: ['[2001:db8::1]:51820'], wanted: [two.id] });
  await state(two, { candidates: ['[2001:db8::2]:51820'] });
  expect(endpointsIn(await take(one))).toEqual(['[2001:db8::2]:51820']);
});

test('rows that are of no use any more are deleted by the next statement', async () => {
  const office = await startPaths();
  const { one, two, add, state, plane, pairs } = office;
  const attempt = attemptIn((await startTrying(office))[0]);
  for (const [host, peer] of [
    [one, two],
    [two, one],
  ] as const)
    await state(host, { proven: [{ peer: peer.id, attempt }] });
  const [three, four] = [await add(), await add()];
  await startTrying({ ...office, one: three, two: four });
  const count = () =>
    withDatabase(plane.dataDir, async (db) => ({
      starts: (await db.selectFrom('path_starts').selectAll().execute()).length,
      endpoints: (await db.selectFrom('peer_endpoints').selectAll().execute()).length,
    }));
  expect([await count(), (await pairs()).length]).toEqual([{ starts: 4, endpoints: 8 }, 2]);
  plane.clock.advance(minute + 1);
  await state(one, {});
  expect([await count(), (await pairs()).length]).toEqual([{ starts: 0, endpoints: 8 }, 2]);
  plane.clock.advance(31 * minute);
  await state(one, {});
  expect([await count(), (await pairs()).map((pair) => pair.state)]).toEqual([{ starts: 0, endpoints: 0 }, ['direct']]);
  plane.clock.advance(30 * 24 * 60 * minute);
  await state(one, {});
  expect(await pairs()).toEqual([]);
});

test('all rows of a network go with it, and those of a peer with the peer', async () => {
  const office = await startPaths();
  const { one, two, plane, token, network, pairs } = office;
  await startTrying(office);
  const endpoints = () =>
    withDatabase(plane.dataDir, async (db) => {
      const rows = await db.selectFrom('peer_endpoints').select(['peer_id', 'source']).execute();
      return rows.map(({ peer_id, source }) => [peer_id, source]);
    });
  await plane.call('DELETE', `/api/networks/${network}/peers/${two.id}`, { token });
  expect([await pairs(), (await endpoints()).toSorted()]).toEqual([
    [],
    [
      [one.id, office.relay.id],
      [one.id, one.id],
    ].toSorted(),
  ]);
  await plane.call('DELETE', `/api/networks/${network}`, { token });
  expect(await endpoints()).toEqual([]);
  const starts = await withDatabase(plane.dataDir, (db) => db.selectFrom('path_starts').selectAll().execute());
  expect(starts).toEqual([]);
});
