import { expect, test } from 'vitest';
import { parsePrefix } from '../../../src/core/net/cidr.ts';
import { postgres } from '../databases.ts';
import { makeFolder, quiet, startPlane } from '../harness.ts';
import { attemptIn, endpointsIn, hasty, observedAs, pathActions, startPaths } from './paths-office.ts';

test('hosts that want each other at the same moment begin one attempt', async () => {
  const { one, two, relay, state, take, pairs } = await startPaths();
  await Promise.all([
    state(one, { candidates: [], wanted: [two.id] }),
    state(two, { candidates: [], wanted: [one.id] }),
  ]);
  expect((await pairs()).map(({ tries, state }) => [tries, state])).toEqual([[1, 'gathering']]);
  expect(await take(relay)).toEqual([{ kind: 'observe', data: { peers: expect.any(Array) } }]);
  await Promise.all([one, two].map((peer) => state(relay, observedAs(`203.0.113.9:${peer.id}`, peer))));
  // The one that came second may have stated its endpoints before the attempt began.
  await Promise.all([one, two].map((peer) => state(peer, { candidates: [] })));
  const attempts = [attemptIn(await take(one)), attemptIn(await take(two))];
  await Promise.all([
    state(one, { proven: [{ peer: two.id, attempt: attempts[0] ?? 0 }] }),
    state(two, { proven: [{ peer: one.id, attempt: attempts[1] ?? 0 }] }),
  ]);
  expect((await pairs()).map(({ state }) => state)).toEqual(['direct']);
  expect([(await take(one)).length, (await take(two)).length]).toEqual([1, 1]);
});

test.runIf(postgres)('two replicas serve the hosts of one pair, and a third the connector', async () => {
  const dataDir = makeFolder();
  const office = await startPaths({ dataDir, healthTimes: quiet });
  const { one, two, relay, plane, network } = office;
  const others = { dataDir, proxies: [parsePrefix('127.0.0.0/8')], now: plane.clock.now, healthTimes: quiet };
  const there = pathActions(await startPlane(others), network);
  const elsewhere = pathActions(await startPlane(others), network);
  const [ofTwo, ofRelay] = [there.wait(two), elsewhere.wait(relay)];
  await office.state(one, { candidates: [], wanted: [two.id] });
  expect(await ofTwo).toEqual([{ kind: 'candidates', data: { peers: [one.id] } }]);
  await there.state(two, { candidates: [] });
  expect(await ofRelay).toEqual([{ kind: 'observe', data: { peers: [one.id, two.id] } }]);
  const tries = [office.wait(one), there.wait(two)];
  await elsewhere.state(relay, observedAs('203.0.113.9:4711', one, two));
  const [toOne = [], toTwo = []] = await Promise.all(tries);
  expect([endpointsIn(toOne), endpointsIn(toTwo)]).toEqual([['203.0.113.9:4711'], ['203.0.113.9:4711']]);
  const attempt = attemptIn(toTwo);
  expect(attemptIn(toOne)).toBe(attempt);
  const switches = [office.wait(one), there.wait(two)];
  await office.state(one, { proven: [{ peer: two.id, attempt }] });
  await there.state(two, { proven: [{ peer: one.id, attempt }] });
  expect((await Promise.all(switches)).flat().map(({ kind }) => kind)).toEqual(['switch', 'switch']);
  const back = office.wait(one);
  await there.state(two, { ended: [{ peer: one.id, why: 'idle' }] });
  expect(await back).toEqual([{ kind: 'return', data: { peer: two.id } }]);
});

test.runIf(postgres)('the replica that began a gathering ends it', async () => {
  const dataDir = makeFolder();
  const office = await startPaths({ dataDir, healthTimes: hasty });
  const { one, two, plane, network, state, untilPairs } = office;
  const others = { dataDir, proxies: [parsePrefix('127.0.0.0/8')], now: plane.clock.now, healthTimes: quiet };
  const there = pathActions(await startPlane(others), network);
  const waiting = there.wait(two, ['try']);
  await there.state(two, { candidates: ['[2001:db8::2]:51820'] });
  await state(one, { candidates: ['[2001:db8::1]:51820'], wanted: [two.id] });
  await untilPairs(([pair]) => pair?.state === 'trying');
  expect(endpointsIn(await waiting)).toEqual(['[2001:db8::1]:51820']);
});
