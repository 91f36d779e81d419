import { expect, test } from 'vitest';
import { baseOf, matches } from '../../../src/control-plane/http/conditional-requests.ts';

const suffixes = ['', '-gzip', '--gzip', ';gzip', '-br', '--zstd'];

test.each(['abcdefghijkl', 'abcdefghijk-', 'abcdefghij--', '-bcdefghijk_', 'none'])(
  'an ETag with the nonce %s is the same with each suffix that a proxy appends, and weak',
  (nonce) => {
    for (const suffix of suffixes) {
      for (const named of [`"7-${nonce}${suffix}"`, `W/"7-${nonce}${suffix}"`]) {
        expect([named, matches(named, `"7-${nonce}"`)]).toEqual([named, true]);
        expect([named, baseOf(named)]).toEqual([named, { revision: 7, nonce }]);
      }
    }
  },
);

test.each([
  '"7-abcdefghijk-"',
  '"7-abcdefghijk-gzip"',
  '"8-abcdefghijkl"',
  '"7-abcdefghijkl---gzip"',
  '"7-abcdefghijklx"',
])('%s names another revision', (named) => {
  expect(matches(named, '"7-abcdefghijkl"')).toBe(false);
  expect(baseOf(named)).not.toEqual({ revision: 7, nonce: 'abcdefghijkl' });
});
