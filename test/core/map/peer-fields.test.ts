import { expect, it } from 'vitest';
import { aliases } from '../../../src/api/aliases.ts';
import { Peer } from '../../../src/contract/peer.ts';
import { peerFields } from '../../../src/core/map/peer-fields.ts';

it('each field of a peer in the contract has a name by which hosts or administrators read it', () => {
  const own = [...Object.values(peerFields), ...Object.values(aliases.peer).map(([name]) => ({ name }))];
  const names: readonly string[] = own.map(({ name }) => name);
  expect(Object.keys(Peer.shape).filter((name) => !names.includes(name))).toEqual([]);
  expect(new Set(names).size).toBe(names.length);
});
