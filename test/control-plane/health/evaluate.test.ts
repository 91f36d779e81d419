import { expect, test } from 'vitest';
import { Evaluator } from '../../../src/control-plane/health/evaluate.ts';
import { ChangeNotifier } from '../../../src/control-plane/push/change-notifier.ts';
import { savePeerHealth } from '../../../src/control-plane/store/health.ts';
import { eventually } from '../../lab/eventually.ts';
import { postgres } from '../databases.ts';
import { contextOver, enroll, makeFolder, makeKey, makeNetwork, startPlane, withDatabase } from '../harness.ts';
import { actions, type Office, outlast, silence, soon, startOffice } from './office.ts';

/** After an evaluation a network rests for twenty times as long as that took: on a loaded machine, for a minute. */
const patient = { timeoutMs: 170_000 };

const settled = () => new Promise((resolve) => setTimeout(resolve, 6 * soon.tickMs));

/** All hosts made a request, and are announced. */
async function allOnline({ one, two, three, call, events }: Office): Promise<void> {
  for (const peer of [one, two, three]) await call(peer);
  await eventually('all are announced', async () => (await events()).length === 3);
}

test('a host that falls silent is offline, and online again after a request', async () => {
  const office = await startOffice();
  const { one, two, three, call, events } = office;
  await allOnline(office);
  await outlast(office, () => [call(two), call(three)]);
  await eventually('it is offline', async () => (await events()).includes('peer.offline one'));
  await call(one);
  await eventually('it is back', async () => (await events()).at(-1) === 'peer.online one');
  expect((await events()).slice(3)).toEqual(['peer.offline one', 'peer.online one']);
});

test('a silent host that a witness reaches is online, and a witness that is cut off alone changes nothing', async () => {
  const office = await startOffice();
  const { one, two, three, call, report, events, stateOf } = office;
  await allOnline(office);
  await report(two, { paths: [{ peer: one.id, path: 'direct' }] });
  await outlast(office, () => [call(two), call(three)]);
  await report(three, {
    paths: [
      { peer: one.id, path: 'down' },
      { peer: two.id, path: 'down' },
    ],
    routes: [{ route: '192.168.1.0/24', connector: null }],
  });
  await call(three);
  await settled();
  expect(await stateOf(one)).toBe('online');
  expect(await events()).toHaveLength(3);
});

test('hosts that are all silent at once are no event, and neither are those that come back later than the first', async () => {
  const office = await startOffice();
  const { one, two, three, plane, call, events, untilState } = office;
  await allOnline(office);
  plane.clock.advance(3 * silence);
  await untilState(one, 'unknown');
  await settled();
  await call(two);
  plane.clock.advance(60_000);
  await settled();
  await call(one);
  await call(three);
  await call(two);
  plane.clock.advance(60_000);
  await settled();
  expect(await events()).toHaveLength(3);
});

/** A host that reports which connector it uses for the route, and waits until the first is stored. */
async function startServed(office: Office) {
  const { one, two, three, plane, network, report } = office;
  await allOnline(office);
  const route = '192.168.1.0/24';
  const use = (connector: number | null) =>
    report(one, {
      paths: [two, three].map(({ id }) => ({ peer: id, path: id === connector ? 'direct' : 'down' })),
      routes: [{ route, connector }],
    });
  await use(two.id);
  await eventually('it is up', async () => {
    const stored = await withDatabase(plane.dataDir, (db) =>
      db.selectFrom('network_health').select('routes').where('network_id', '=', network).executeTakeFirst(),
    );
    return JSON.parse(stored?.routes ?? '{}')[route]?.connector === two.id;
  });
  return { route, use };
}

const readOver = async ({ plane, token, network }: Office) => {
  const { body } = await plane.call('GET', `/api/networks/${network}/events?after=0`, { token });
  return body.data.find(({ type }: { type: string }) => type === 'route.failed_over');
};

test('a route of a connector that takes it out of service says so, before a host reports another one', async () => {
  const office = await startOffice();
  const { two, three, plane, network, events } = office;
  const { route } = await startServed(office);
  const path = `/api/networks/${network}/peers/${two.id}`;
  await plane.call('PATCH', path, { token: two.token, body: { withdrawn: [route] } });
  await eventually('it failed over', async () => (await events()).includes(`route.failed_over ${route} three`));
  expect((await readOver(office)).details).toMatchObject({ to: { id: three.id }, why: 'two no longer serves it' });
});

test('a route fails over, dies and is restored', async () => {
  const office = await startOffice();
  const { two, three, report, events } = office;
  const { route, use } = await startServed(office);
  await use(three.id);
  await eventually('it failed over', async () => (await events()).includes(`route.failed_over ${route} three`));
  await report(two, { routes: [{ route, connector: two.id, lan: 'down' }] });
  await report(three, { routes: [{ route, connector: three.id, lan: 'down' }] });
  await eventually('it is dead', async () => (await events()).includes(`route.dead ${route}`));
  await report(three, { routes: [{ route, connector: three.id, lan: 'up' }] });
  await eventually('it is restored', async () => (await events()).includes(`route.restored ${route}`));
  const { details } = await readOver(office);
  expect(details).toMatchObject({ from: { id: two.id, name: 'two' }, to: { id: three.id, name: 'three' } });
  expect(details.why).toBe('1 of 1 host uses it');
});

test('a route that its only host never reached is unknown until that host reaches it, and no event', async () => {
  const office = await startOffice();
  const { one, two, three, report, events, health } = office;
  const { route } = await startServed(office);
  const see = async (path: string) => {
    const paths = [two, three].map(({ id }) => ({ peer: id, path }));
    const connector = path === 'direct' ? two.id : null;
    await report(one, { paths, routes: [{ route, connector }], complete: true });
    const [verdict] = (await health()).routes;
    return [verdict?.state, verdict?.connector];
  };
  expect(await see('never')).toEqual(['unknown', null]);
  // It reached one before, so it is rather cut off itself.
  expect(await see('down')).toEqual(['up', two.id]);
  expect(await see('never')).toEqual(['unknown', null]);
  expect(await see('direct')).toEqual(['up', two.id]);
  expect((await events()).filter((event) => event.startsWith('route.'))).toEqual([]);
});

test('a route without a connector at each host is dead after two seconds, and not before', async () => {
  const office = await startOffice();
  const { one, two, three, plane, report, events, health } = office;
  const { route, use } = await startServed(office);
  const lose = () => report(one, { paths: [{ peer: three.id, path: 'direct' }], routes: [{ route, connector: null }] });
  const stateOfRoute = async () => (await health()).routes[0]?.state;
  await lose();
  plane.clock.advance(1_900);
  await use(two.id);
  await lose();
  plane.clock.advance(1_900);
  await settled();
  expect(await stateOfRoute()).toBe('unknown');
  expect((await events()).filter((event) => event.startsWith('route.'))).toEqual([]);
  // Without another report.
  plane.clock.advance(100);
  await eventually('it is dead', async () => (await events()).includes(`route.dead ${route}`));
  expect(await stateOfRoute()).toBe('dead');
  await use(two.id);
  await eventually('it is restored', async () => (await events()).at(-1) === `route.restored ${route}`);
});

test('a single host that reaches nothing does not make a route dead', async () => {
  const office = await startOffice();
  const { one, two, three, report, events, health } = office;
  await allOnline(office);
  await report(one, {
    paths: [two, three].map(({ id }) => ({ peer: id, path: 'down' })),
    routes: [{ route: '192.168.1.0/24', connector: null }],
  });
  await settled();
  expect((await health()).routes).toMatchObject([{ state: 'up', connector: two.id, standby: [three.id] }]);
  expect(await events()).toHaveLength(3);
});

test('a peer that is suspended is neither online nor offline', async () => {
  const office = await startOffice();
  const { one, two, plane, token, network, call, events, health } = office;
  await allOnline(office);
  const path = `/api/networks/${network}/peers/${one.id}`;
  await plane.call('PATCH', path, { token, body: { suspended: true } });
  await outlast(office, () => [call(two)]);
  await eventually('the third is offline', async () => (await events()).includes('peer.offline three'));
  expect((await events()).filter((event) => event.endsWith(' one'))).toEqual(['peer.online one', 'peer.removed one']);
  expect((await health()).peers.map(({ id }) => id)).not.toContain(one.id);
});

test('a peer that is resumed is not online by requests that were refused', async () => {
  const office = await startOffice();
  const { one, two, plane, token, network, call, events } = office;
  await allOnline(office);
  const path = `/api/networks/${network}/peers/${one.id}`;
  await plane.call('PATCH', path, { token, body: { suspended: true } });
  expect((await call(one)).status).toBe(403);
  await outlast(office, () => [call(two)]);
  expect((await call(one)).status).toBe(403);
  await settled();
  await plane.call('PATCH', path, { token, body: { suspended: false } });
  await eventually('it is offline', async () => (await events()).at(-1) === 'peer.offline one');
  await call(one);
  await eventually('it is online', async () => (await events()).at(-1) === 'peer.online one');
});

test('reports are events where they bring news, and so many only', async () => {
  const { one, two, plane, report, events } = await startOffice();
  await report(one, { pin_mismatches: [two.id], problem: 'nft failed' });
  await report(one, { pin_mismatches: [two.id], problem: 'nft failed again' });
  await report(one, { problem: null });
  const ofReports = async () => (await events()).filter((event) => !event.startsWith('peer.'));
  expect(await ofReports()).toEqual(['pin.mismatch two', 'reconcile.failing one', 'reconcile.recovered one']);
  for (let count = 0; count < 60; count += 1) {
    plane.clock.advance(2000);
    await report(one, { problem: count % 2 === 0 ? 'x' : null });
  }
  expect((await ofReports()).length).toBeLessThanOrEqual(33);
});

test('however many reports come, readers are woken twice a second', async () => {
  const healthNotifier = new ChangeNotifier(500);
  const { network, one, two, three, report } = await startOffice({ healthNotifier });
  let woken = 0;
  const end = new AbortController();
  const counting = (async () => {
    while (await healthNotifier.wait(network, end.signal)) woken += 1;
  })();
  const startedAt = performance.now();
  for (let count = 0; count < 20; count += 1) {
    for (const peer of [one, two, three]) expect((await report(peer, { drift: count })).status).toBe(200);
  }
  await eventually('a reader was woken', () => woken > 0);
  const seconds = (performance.now() - startedAt) / 1000;
  end.abort();
  await counting;
  expect(woken).toBeLessThanOrEqual(2 * seconds + 2);
});

test.runIf(postgres)('of two replicas one writes each event', async () => {
  const dataDir = makeFolder();
  const office = await startOffice({ dataDir });
  const { one, two, three, plane, network, token, events, report, call } = office;
  const other = await startPlane({ dataDir, healthTimes: soon, now: plane.clock.now });
  const there = actions(other, network, token);
  await allOnline(office);
  // That both find an event before one writes it is forced in held-changes.test.ts.
  for (let round = 0; round < 2; round += 1) {
    await outlast(office, () => [there.call(two), call(three)]);
    await report(three, { paths: [{ peer: one.id, path: 'down' }] });
    await there.report(two, { paths: [{ peer: one.id, path: 'down' }] });
    await eventually('it is offline', async () => (await events()).at(-1) === 'peer.offline one', patient);
    await settled();
    await there.call(one);
    await eventually('it is back', async () => (await events()).at(-1) === 'peer.online one', patient);
    await settled();
  }
  const expected = Array.from({ length: 2 }, () => ['peer.offline one', 'peer.online one']).flat();
  expect((await events()).slice(3)).toEqual(expected);
});

test.runIf(postgres)('when one of two replicas dies, hosts that go to the other are no false alarm', async () => {
  const dataDir = makeFolder();
  const office = await startOffice({ dataDir });
  const { one, two, three, plane, network, token } = office;
  const other = await startPlane({ dataDir, healthTimes: soon, now: plane.clock.now });
  const there = actions(other, network, token);
  await allOnline(office);
  // A host makes a request every minute, and what is stored of it is older than that.
  plane.clock.advance(59_000);
  for (const peer of [one, two, three]) await office.call(peer);
  plane.clock.advance(5_000);
  const readRows = () => withDatabase(dataDir, (db) => db.selectFrom('peer_health').selectAll().execute());
  const since = new Date(plane.clock.now().getTime() - 65_000).toISOString();
  await eventually('requests are stored', async () =>
    (await readRows()).every(({ last_seen }) => last_seen !== null && last_seen >= since),
  );
  const stored = await readRows();
  await plane.server.close();
  // One that is killed writes nothing at its end.
  await withDatabase(dataDir, async (db) => {
    for (const { peer_id, last_seen } of stored) {
      await db.updateTable('peer_health').set({ last_seen }).where('peer_id', '=', peer_id).execute();
    }
  });
  plane.clock.advance(20_000);
  for (const peer of [one, two, three]) await there.call(peer);
  await settled();
  plane.clock.advance(80_000);
  await settled();
  expect(await there.events()).toEqual(['peer.online one', 'peer.online two', 'peer.online three']);
});

test('a witness that changes its mind again and again states ten events about a peer, and more as time goes by', async () => {
  const office = await startOffice();
  const { one, three, plane, call, report, events } = office;
  const ofThree = async () => (await events()).filter((event) => event.endsWith('three'));
  const say = (path: string) => report(one, { paths: [{ peer: three.id, path }] });
  // After a start no host that was online is offline.
  plane.clock.advance(silence);
  await call(one);
  for (let count = 1; count <= 10; count += 1) {
    await say(count % 2 === 1 ? 'direct' : 'down');
    await eventually(`event ${count}`, async () => (await ofThree()).length === count);
  }
  await say('direct');
  await settled();
  expect(await ofThree()).toHaveLength(10);
  plane.clock.advance(600_000);
  await call(one);
  await eventually('the event that was held back', async () => (await ofThree()).length === 11);
  expect((await ofThree()).slice(-2)).toEqual(['peer.offline three', 'peer.online three']);
});

test('a witness alone states no return of a host that calls the control plane', async () => {
  const office = await startOffice();
  const { one, two, three, call, report, events, stateOf } = office;
  await allOnline(office);
  await outlast(office, () => [call(two), call(three)]);
  await eventually('it is offline', async () => (await events()).at(-1) === 'peer.offline one');
  for (const path of ['direct', 'down', 'direct']) {
    await report(two, { paths: [{ peer: one.id, path }] });
    await settled();
  }
  expect(await stateOf(one)).toBe('online');
  expect((await events()).slice(3)).toEqual(['peer.offline one']);
  await call(one);
  await eventually('it is back', async () => (await events()).at(-1) === 'peer.online one');
});

test('a witness states sixty events about peers that do not call the control plane', async () => {
  const office = await startOffice();
  const { one, plane, token, network, call, report, events } = office;
  const phones: number[] = [];
  for (let count = 0; count < 8; count += 1) {
    const key = await makeKey(plane, token, network);
    for (let use = 0; use < 5; use += 1)
      phones.push((await enroll(plane, key, { name: `phone-${phones.length}` })).body.data.peer.id);
  }
  plane.clock.advance(silence);
  await call(one);
  await eventually('it is online', async () => (await events()).length === 1);
  const say = (path: string) => report(one, { paths: phones.map((peer) => ({ peer, path })) });
  for (const [path, count] of [
    ['direct', 40],
    ['down', 60],
    ['direct', 60],
  ] as const) {
    await say(path);
    await eventually(`${count} events`, async () => (await events()).length - 1 === count, patient);
  }
  await settled();
  expect((await events()).length - 1).toBe(60);
  plane.clock.advance(60_000);
  await eventually('one more', async () => (await events()).length - 1 === 61, patient);
});

test('a host that uses another connector again and again states ten events about the route', async () => {
  const office = await startOffice();
  const { one, two, three, call, report, events } = office;
  const ofRoute = async () => (await events()).filter((event) => event.startsWith('route.'));
  const use = ({ id }: typeof one) => report(one, { routes: [{ route: '192.168.1.0/24', connector: id }] });
  await use(two);
  await allOnline(office);
  await settled();
  for (let count = 1; count <= 10; count += 1) {
    await use(count % 2 === 1 ? three : two);
    await eventually(`event ${count}`, async () => (await ofRoute()).length === count);
  }
  await use(three);
  await call(three);
  await settled();
  expect(await ofRoute()).toHaveLength(10);
});

test('a first request counts once what is read with it has it too', async () => {
  const { plane, network, one } = await startOffice({ healthTimes: { ...soon, tickMs: 1e9 } });
  await withDatabase(plane.dataDir, async (db) => {
    const context = contextOver(db, plane);
    const presence = { silenceOf: (peer: number) => (peer === one.id ? 0 : null), setOnline: () => {} };
    const options = { keepsPresence: true, tickMs: 1e9, settleMs: 1, failures: { note: () => {} } };
    const evaluator = new Evaluator(context, presence, options);
    const stateOfOne = async () => {
      const { judged } = await evaluator.evaluate(network);
      return judged.peers.get(one.id)?.state;
    };
    expect(await stateOfOne()).toBe('unknown');
    await savePeerHealth(db, one.id, { last_seen: new Date(0).toISOString() });
    expect(await stateOfOne()).toBe('online');
    await evaluator.stop();
  });
});

test('what was read before an event was stored does not undo it', async () => {
  const { plane, network, one } = await startOffice({ healthTimes: { ...soon, tickMs: 1e9 } });
  const late = Promise.withResolvers<void>();
  const states: boolean[] = [];
  let reads = 0;
  await withDatabase(plane.dataDir, async (db) => {
    await savePeerHealth(db, one.id, { last_seen: plane.clock.now().toISOString() });
    const context = contextOver(db, plane, {
      readTime: async () => {
        reads += 1;
        if (reads === 1) await late.promise;
        return plane.clock.now();
      },
      // In the transaction that stores the event: the evaluation that began before it ends only now.
      announce: async () => {
        late.resolve();
        await new Promise((resolve) => setTimeout(resolve, 100));
      },
    });
    const presence = {
      silenceOf: (peer: number) => (peer === one.id ? 0 : null),
      setOnline: (peer: number, isOnline: boolean) => {
        if (peer === one.id) states.push(isOnline);
      },
    };
    const options = { keepsPresence: true, tickMs: 1e9, settleMs: 1, failures: { note: () => {} } };
    const evaluator = new Evaluator(context, presence, options);
    evaluator.schedule(network);
    await eventually('the first was read', () => reads === 1);
    evaluator.schedule(network);
    await eventually('it is online', () => states.includes(true), patient);
    await new Promise((resolve) => setTimeout(resolve, 100));
    await evaluator.stop();
  });
  expect(states.at(-1)).toBe(true);
});

test('readers of a network take a part of the time, however often they read', async () => {
  const { plane, network } = await startOffice();
  let read = 0;
  const readTime = async () => {
    read += 1;
    await new Promise((resolve) => setTimeout(resolve, 50));
    return plane.clock.now();
  };
  await withDatabase(plane.dataDir, async (db) => {
    const context = contextOver(db, plane, { readTime });
    const presence = { silenceOf: () => null, setOnline: () => {} };
    const evaluator = new Evaluator(context, presence, {
      ...{ keepsPresence: true, failures: { note: () => {} } },
      tickMs: 1e9,
      settleMs: 1,
    });
    const end = performance.now() + 1000;
    while (performance.now() < end) await evaluator.read(network);
    await evaluator.stop();
  });
  expect(read).toBeGreaterThan(0);
  expect(read).toBeLessThan(6);
});

test('results of probes that were asked for are judged before other reports, where an evaluation takes long', async () => {
  const { plane, network, token } = await startOffice({ healthTimes: { ...soon, tickMs: 1e9 } });
  const other = await makeNetwork(plane, token, { private_cidr: '10.81.0.0/24' });
  const readTime = async () => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    return plane.clock.now();
  };
  await withDatabase(plane.dataDir, async (db) => {
    const context = contextOver(db, plane, { readTime });
    const presence = { silenceOf: () => null, setOnline: () => {} };
    const evaluated: number[] = [];
    const evaluator = new Evaluator(context, presence, {
      ...{ keepsPresence: true, failures: { note: () => {} }, tickMs: 1e9, settleMs: 1 },
      onSilent: (id) => evaluated.push(id),
    });
    for (const id of [network, other]) await evaluator.evaluate(id);
    for (const isAwaited of [false, true, false]) {
      evaluator.schedule(network);
      evaluator.schedule(other, isAwaited);
      evaluator.schedule(other);
    }
    await eventually('both are judged', () => evaluated.includes(network) && evaluated.includes(other));
    await evaluator.stop();
    expect(evaluated).toEqual([other, network]);
  });
});

test('a network that is deleted while others are judged is no outage', async () => {
  const { plane, token } = await startOffice({ healthTimes: { ...soon, tickMs: 1e9 } });
  const add = async (subnet: string) => {
    const network = await makeNetwork(plane, token, { private_cidr: subnet });
    const { body } = await enroll(plane, await makeKey(plane, token, network), { name: 'one', peer_type: 'origin' });
    const own = actions(plane, network, token);
    await own.call({ id: body.data.peer.id, name: 'one', token: body.data.access_token });
    await eventually('it is online', async () => (await own.events()).length === 1);
    return { network, ...own };
  };
  const first = await add('10.81.0.0/24');
  const { network: deleted } = await add('10.82.0.0/24');
  const last = await add('10.83.0.0/24');
  await withDatabase(plane.dataDir, async (db) => {
    let reads = 0;
    const readTime = async () => {
      reads += 1;
      // The first is for the list of networks.
      if (reads === 2) await db.deleteFrom('networks').where('id', '=', deleted).execute();
      return plane.clock.now();
    };
    const context = contextOver(db, plane, { readTime });
    const presence = { silenceOf: () => null, setOnline: () => {} };
    const options = { keepsPresence: true, tickMs: 20, settleMs: 1, failures: { note: () => {} } };
    const evaluator = new Evaluator(context, presence, options);
    plane.clock.advance(silence);
    for (const { events } of [first, last]) {
      await eventually('it is offline', async () => (await events()).at(-1) === 'peer.offline one');
    }
    await evaluator.stop();
  });
});

test('the summary of all networks counts what is down, and laptops that are off are no servers', async () => {
  const office = await startOffice();
  const { plane, token, network, one, two, three, call } = office;
  const laptop = await enroll(plane, await makeKey(plane, token, network), { name: 'l', peer_type: 'admin_device' });
  const own = { ...laptop.body.data.peer, token: laptop.body.data.access_token };
  const summary = async () => {
    const { body } = await plane.call('GET', '/api/health', { token });
    return body.data.find((each: { network: number }) => each.network === network);
  };
  expect(await summary()).toEqual({
    ...{ network, peers: { online: 0, offline: 0, unknown: 4 }, routes: { up: 0, dead: 0, unknown: 1 } },
    ...{ offline_servers: 0, silent_connectors: 2 },
  });
  for (const peer of [one, two, own]) await call(peer);
  await eventually('they are announced', async () => (await office.events()).length === 3);
  await outlast(office, () => [call(two)]);
  await eventually('two are offline', async () => (await summary()).peers.offline === 2);
  expect(await summary()).toEqual({
    ...{ network, peers: { online: 1, offline: 2, unknown: 1 }, routes: { up: 1, dead: 0, unknown: 0 } },
    ...{ offline_servers: 1, silent_connectors: 1 },
  });
  await call(three);
  await eventually('it answered', async () => (await summary()).silent_connectors === 0);
  const { body } = await plane.call('GET', '/api/health', { token: await plane.signIn('viewer') });
  expect(body.data).toHaveLength(2);
  expect((await plane.call('GET', '/api/health', { token: one.token })).status).toBe(403);
});
