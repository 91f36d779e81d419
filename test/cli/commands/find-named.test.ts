import { expect, test } from 'vitest';
import { findNamed } from '../../../src/cli/admin.ts';

const peers = [
  { id: 2, name: '3' },
  { id: 3, name: '2' },
  { id: 8, name: 'web' },
  { id: 4, name: 'twin' },
  { id: 5, name: 'twin' },
  { id: 6, name: '6' },
  { id: 7, name: '\u001b[31mred' },
];

// Peers choose their names: 2 and 3 are called by each other's id.
test.each([
  ['2', 2],
  ['3', 3],
  ['web', 8],
  ['6', 6],
])('%s is one of a list', (named, id) => expect(findNamed(peers, named, 'peer').id).toBe(id));

test.each([
  ['twin', '"twin" matches 2 peers: "twin" (4), "twin" (5); give an id'],
  [
    'nope',
    'there is no peer "nope"; there are: "3" (2), "2" (3), "web" (8), "twin" (4), "twin" (5), "6" (6), "\u{fffd}[31mred" (7)',
  ],
])('%s is none, or more than one', (named, why) => expect(() => findNamed(peers, named, 'peer')).toThrow(why));
