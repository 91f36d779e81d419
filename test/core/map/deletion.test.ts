import { expect, it } from 'vitest';
import { Refused, type StatedDeletion, Unreachable } from '../../../src/core/errors/index.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import { statesDeletion } from '../../../src/core/map/sync-refusal.ts';
import { parsePrefix } from '../../../src/core/net/cidr.ts';

const map: NetworkMap = {
  ...{ id: 7, name: 'office', cidr: parsePrefix('10.77.0.0/24'), routes: [], revision: null, peers: [] },
  nonce: 'q83vEjRWeJq8',
};
const gone = (deleted: StatedDeletion | null, status = 410) => new Refused(status, 'it', 'Gone', null, { deleted });

it.each<[string, boolean, StatedDeletion | null, NetworkMap]>([
  ['the id and the nonce of the network', true, { id: 7, nonce: 'q83vEjRWeJq8' }, map],
  ['the id as text', true, { id: '7', nonce: 'q83vEjRWeJq8' }, map],
  ['the id as a number, of a network that has a text', true, { id: 7, nonce: 'q83vEjRWeJq8' }, { ...map, id: '7' }],
  ['nothing', false, null, map],
  ['another nonce', false, { id: 7, nonce: 'AAAAAAAAAAAA' }, map],
  ['another id', false, { id: 8, nonce: 'q83vEjRWeJq8' }, map],
  [
    'a nonce, of a network that has none',
    false,
    { id: 7, nonce: 'q83vEjRWeJq8' },
    { ...map, nonce: undefined } as never,
  ],
  ['an id, of a network that has none', false, { id: 7, nonce: 'q83vEjRWeJq8' }, { ...map, id: null }],
])('a 410 with %s states the deletion: %s', (_, expected, deleted, known) => {
  expect(statesDeletion(gone(deleted), known)).toBe(expected);
});

it('no other failure states it', () => {
  const unreachable = new Unreachable('http://x', 'no route', { delivered: false, heard: false, retryAfterMs: null });
  expect(statesDeletion(unreachable, map)).toBe(false);
});
