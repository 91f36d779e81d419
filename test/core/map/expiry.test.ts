import { expect, it } from 'vitest';
import { findExpiryWarning } from '../../../src/core/map/expiry.ts';
import { keyPair, network, peer } from '../samples.ts';

const now = new Date('2030-01-01T00:00:00.000Z');
const dayMs = 86_400_000;

it.each<[number | undefined, [number, string] | null]>([
  [undefined, null],
  [8, null],
  [7, [7, '2030-01-08T00:00:00.000Z']],
  [1.5, [2, '2030-01-02T12:00:00.000Z']],
  [1.25, [2, '2030-01-02T06:00:00.000Z']],
  [0.5, [1, '2030-01-01T12:00:00.000Z']],
  [0, [0, '2030-01-01T00:00:00.000Z']],
  [-30, [-30, '2029-12-02T00:00:00.000Z']],
])('an end in %j days is %j', (days, found) => {
  const own = peer(1, days === undefined ? {} : { expiresAt: now.getTime() + days * dayMs });
  const host = { keyPair: keyPair(1), rotation: null, membership: { map: network([own]), peer: own } };
  const expected = found && { isOver: found[0] <= 0, days: found[0], at: found[1], isMovedByLogin: false };
  expect(findExpiryWarning(host, now)).toEqual(expected);
});
