import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { closePlane } from '../harness.ts';
import { changed, long, makeOffice, openWaiting, outcome, read, unchanged, type Waiting } from './long-poll.ts';

let on: Waiting;
beforeAll(async () => {
  on = await openWaiting();
});
afterAll(() => closePlane(on.plane));

describe('a reply comes at once', () => {
  test('it does when the revision is another already, and says that it would have waited', async () => {
    const { network } = await makeOffice(on);
    expect(outcome(await read(on, network, 1, long))).toEqual(changed(2));
    expect(outcome(await read(on, network, 7, 'wait=3600'))).toEqual(changed(2, 45));
    // Hosts of earlier versions request 50 s.
    expect(outcome(await read(on, network, 1, 'wait=50'))).toEqual(changed(2, 45));
  });

  test('it does to a request without If-None-Match', async () => {
    const { network } = await makeOffice(on);
    expect(outcome(await read(on, network, null, long))).toEqual([200, '"2"', null, 2]);
  });

  test('it does to wait=0, which is honoured', async () => {
    const { network } = await makeOffice(on);
    expect(outcome(await read(on, network, 2, 'wait=0'))).toEqual(unchanged(2, 0));
  });

  test.each([
    '',
    'wait',
    'wait=',
    'wait=""',
    'wait=-1',
    'wait=1.5',
    'wait=5s',
    'wait=5 s',
    'wait 5',
    'wait="5',
    'await=5',
    'respond-async; wait=5',
    'x="a, wait=5"',
    'x="a, wait=5',
    'wait=x, wait=5',
  ])('to the preference %j, which is none', async (prefer) => {
    const { network } = await makeOffice(on);
    expect(outcome(await read(on, network, 2, prefer))).toEqual([304, '"2"', null, undefined]);
  });

  test.each(['wait=1', 'WAIT = 1', 'respond-async,wait=1', 'x="a,b\\"", wait="1"; y=z', 'wait=1, wait=9'])(
    'but not to %j',
    async (prefer) => {
      const { network } = await makeOffice(on);
      expect(outcome(await read(on, network, 2, prefer))).toEqual(unchanged(2, 1));
    },
  );
});
