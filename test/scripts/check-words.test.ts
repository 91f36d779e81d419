import { expect, test } from 'vitest';
import { findInComments, findWords } from '../../scripts/check-words.ts';

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

test.each([
  ['a docstring', '/** The host says so. */', ['says']],
  ['the middle of a docstring', '   * by whom it is used', ['whom']],
  ['a line of its own', '  // What it knows is old.', ['knows']],
  ['the end of a line', "call('it says so'); // as the peer tells", ['tells']],
  ['no code', "const text = 'the host says so';", []],
  ['a line that is too wide', `// ${'x'.repeat(98)}`, ['101 columns']],
  ['no line that is just as wide as it may be', `// ${'x'.repeat(97)}`, []],
  ['no code that is wide', `const text = '${'x'.repeat(98)}';`, []],
])('finds in comments: %s', (_, text, words) => {
  expect(findInComments(text).map(({ word }) => word)).toEqual(words);
});
