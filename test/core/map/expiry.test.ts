import { expect, it } from 'vitest';
import { describeExpiry } from '../../../src/core/map/expiry.ts';

const now = new Date('2030-01-01T00:00:00.000Z');
const dayMs = 86_400_000;

it.each<[number | undefined, string | null]>([
  [undefined, null],
  [8, null],
  [7, 'this host expires in 7 days, on 2030-01-08T00:00:00.000Z'],
  [1.5, 'this host expires in 2 days'],
  [0.5, 'this host expires within a day, on 2030-01-01T12:00:00.000Z'],
  [0, 'this host expired on 2030-01-01T00:00:00.000Z'],
  [-30, 'this host expired on 2029-12-02T00:00:00.000Z'],
])('an end in %j days is %j', (days, found) => {
  const ending = describeExpiry(days === undefined ? undefined : now.getTime() + days * dayMs, now, {
    network: 3,
    peer: 7,
  });
  expect(ending).toEqual(
    found && {
      isOver: (days ?? 0) <= 0,
      found: expect.stringContaining(found),
      remedy: 'an admin sets a later end: cpn peer update 3 7 --expires 90d',
    },
  );
});
