import { expect, test } from 'vitest';
import { findNamed } from '../../../src/cli/admin.ts';

const peers = [
  { id: 2, name: '3' },
  { id: 3, name: 'web' },
  { id: 4, name: 'twin' },
  { id: 5, name: 'twin' },
  { id: 6, name: '6' },
];

test.each([
  ['2', 2],
  ['web', 3],
  ['6', 6],
])('%s is one of a list', (named, id) => expect(findNamed(peers, named, 'peer').id).toBe(id));

test.each([
  [
    '3',
    '"3" is the id of "web", and the name of the one with the id 2; name the one by its name, or the other by its id',
  ],
  ['twin', '2 peers are called "twin"; name one by its id: 4, 5'],
  ['nope', 'there is no peer "nope"; there are: 3 (2), web (3), twin (4), twin (5), 6 (6)'],
])('%s is none, or more than one', (named, why) => expect(() => findNamed(peers, named, 'peer')).toThrow(why));
