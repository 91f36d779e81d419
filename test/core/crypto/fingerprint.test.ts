import { expect, test } from 'vitest';
import { fingerprintOf, isFingerprint, isSameFingerprint } from '../../../src/core/crypto/fingerprint.ts';

const key = Buffer.from(Array.from({ length: 32 }, (_, at) => at * 8)).toString('base64');
const shown = '0008 1018 2028 3038 4048 5058 6068 7078';

test('a fingerprint is the first half of a key, in groups of four digits', () => {
  expect(fingerprintOf(key)).toBe(shown);
  expect(fingerprintOf(Buffer.alloc(32, 255).toString('base64'))).toBe(Array(8).fill('ffff').join(' '));
});

test.each([
  ['as shown', shown, true],
  ['without spaces', shown.replaceAll(' ', ''), true],
  ['in upper case with colons', shown.replaceAll(' ', ':').toUpperCase(), true],
  ['another one', shown.replace('7078', '7079'), false],
])('a typed one matches: %s', (_what, typed, matches) => {
  expect([isFingerprint(typed), isSameFingerprint(typed, shown)]).toEqual([true, matches]);
});

test.each([
  ['its beginning', shown.slice(0, -1)],
  ['more than it', `${shown}0`],
  ['other letters', shown.replace('0008', 'zzzz')],
  ['nothing', ''],
])('is not a whole one: %s', (_what, typed) => {
  expect(isFingerprint(typed)).toBe(false);
});
