import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { closePlane, enroll, type Reply } from '../harness.ts';
import {
  changed,
  long,
  makeOffice,
  openWaiting,
  outcome,
  read,
  unchanged,
  untilWaiting,
  type Waiting,
} from './long-poll.ts';

let on: Waiting;
beforeAll(async () => {
  on = await openWaiting();
});
afterAll(() => closePlane(on.plane));

const call = (method: string, path: string, body?: object) =>
  on.plane.call(method, `/api/networks/${path}`, { token: on.token, body });
type Office = Awaited<ReturnType<typeof makeOffice>>;

describe('a reply that waits', () => {
  test.each<[string, (office: Office) => Promise<Reply>]>([
    ['an enrolment', ({ key }) => enroll(on.plane, key)],
    ['a change of the network', ({ network }) => call('PATCH', `${network}`, { name: 'moved' })],
    ['a change of a peer', ({ network, peer }) => call('PATCH', `${network}/peers/${peer}`, { name: 'moved' })],
    ['the removal of a peer', ({ network, peer }) => call('DELETE', `${network}/peers/${peer}`)],
  ])('comes after %s, with what was changed', async (what, change) => {
    const office = await makeOffice(on);
    const reply = read(on, office.network, 2, long);
    await untilWaiting(on, office.network);
    expect((await change(office)).status).toBeLessThan(300);
    expect(outcome(await reply)).toEqual(changed(3));
    const { removed, ...whole } = (await reply).body.data;
    expect(removed).toEqual(what === 'the removal of a peer' ? [office.peer] : undefined);
    expect(whole).toEqual((await read(on, office.network, null, '')).body.data);
    expect(on.notifier.count()).toBe(0);
  });

  test('comes to the peer itself too', async () => {
    const { network, key, peerToken } = await makeOffice(on);
    const reply = read(on, network, 2, long, peerToken);
    await untilWaiting(on, network);
    await enroll(on.plane, key);
    expect(outcome(await reply)).toEqual(changed(3));
  });

  test('is a 304 when the time is over, and not before', async () => {
    const { network } = await makeOffice(on);
    const started = performance.now();
    expect(outcome(await read(on, network, 2, 'wait=1'))).toEqual(unchanged(2, 1));
    expect(performance.now() - started).toBeGreaterThan(950);
    expect(on.notifier.count()).toBe(0);
  });

  test('goes on waiting after what changed nothing', async () => {
    const { network, key, peer } = await makeOffice(on);
    const reply = read(on, network, 2, long);
    await untilWaiting(on, network);
    const asked = vi.spyOn(on.notifier, 'notify');
    await call('PATCH', `${network}`, { name: 'office' });
    await call('PATCH', `${network}/peers/${peer}`, { name: 'edge' });
    const refused = await enroll(on.plane, key, { public_key: 'none' });
    expect([refused.status, asked.mock.calls, on.notifier.count(network)]).toEqual([422, [], 1]);
    // A notification for a revision that the client already has.
    on.notifier.notify(network);
    await untilWaiting(on, network);
    await enroll(on.plane, key);
    expect(outcome(await reply)).toEqual(changed(3));
  });

  test('misses no change between the look at the revision and the wait', async () => {
    const { network } = await makeOffice(on);
    for (let revision = 2; revision < 40; revision++) {
      const reply = read(on, network, revision, 'wait=20');
      await call('PATCH', `${network}`, { name: `n${revision}` });
      expect(outcome(await reply)).toEqual(changed(revision + 1, 20));
    }
  });
});

describe('200 at once', () => {
  test('all get the one new revision, and those of another network go on waiting', async () => {
    const { network, key, peerToken } = await makeOffice(on);
    const other = await makeOffice(on);
    const replies = Array.from({ length: 200 }, (_, index) =>
      read(on, network, 2, long, index < 8 ? peerToken : on.token),
    );
    const others = [1, 2, 3].map(() => read(on, other.network, 2, long));
    await Promise.all([untilWaiting(on, network, 200), untilWaiting(on, other.network, 3)]);
    const asked = vi.spyOn(on.notifier, 'wait');
    await enroll(on.plane, key);
    for (const reply of await Promise.all(replies)) expect(outcome(reply)).toEqual(changed(3));
    expect(on.notifier.count(network)).toBe(0);
    // A wait that wakes up calls wait() again.
    expect(asked.mock.calls.filter(([id]) => id === other.network)).toEqual([]);
    expect(on.notifier.count(other.network)).toBe(3);
    await enroll(on.plane, other.key);
    for (const reply of await Promise.all(others)) expect(outcome(reply)).toEqual(changed(3));
  });
});
