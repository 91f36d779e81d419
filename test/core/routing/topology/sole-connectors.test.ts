import { expect, it } from 'vitest';
import { findSoleConnectors } from '../../../../src/core/routing/topology/via-connectors.ts';
import { dialled, network, peer } from '../../samples.ts';

it('names the silent connectors that other peers dial alone, with these peers', () => {
  const connectors = [1, 2, 3].map((id) => peer(id, { type: 'connector', endpoint: dialled(id) }));
  const phones = [4, 5, 6, 7, 8].map((id) => peer(id, { via: { connector: id === 4 ? 1 : 2 } }));
  const map = network([...connectors, ...phones, peer(9, { via: { connector: 99 } }), peer(10)]);
  expect(findSoleConnectors(map, new Set())).toEqual([]);
  expect(findSoleConnectors(map, new Set([3, 10]))).toEqual([]);
  expect(findSoleConnectors(map, new Set([1, 2]))).toEqual([
    { connector: 'peer-1', peers: ['peer-4'] },
    { connector: 'peer-2', peers: ['peer-5', 'peer-6', 'peer-7', 'peer-8'] },
  ]);
});
