import { expect, test } from 'vitest';
import { findWords } from '../../scripts/check-words.ts';

test.each([
  ['a sentence', 'Whoever asks is told.', ['whoever', 'asks', 'told']],
  ['an identifier', 'const mostTold = isHeirOf(x);', ['told', 'heir']],
  ['a constant', 'const TOLD_MAX = 1;', ['told']],
  ['no part of a word', 'toldness heirs tasks besideness', []],
  ['two spellings', 'An Enrollment key of the organisation.', ['organisation', 'enrollment key']],
  ['no name of the API', "call('api/enrollment-keys', { enrollment_token, team: 'organisation' });", []],
])('finds the words in %s', (_, text, words) => {
  expect(findWords(text).map(({ word }) => word)).toEqual(words);
});

test('says where a word is, and what to write', () => {
  expect(findWords('one\nanew\n')).toEqual([{ line: 2, word: 'anew', instead: 'again' }]);
});
