import { expect, it } from 'vitest';
import { describeDialled } from '../../../src/core/health/describe-dialled.ts';
import { dialled, network, peer } from '../samples.ts';

it('names the silent connectors that other peers dial alone, with these peers', () => {
  const connectors = [1, 2, 3].map((id) => peer(id, { type: 'connector', endpoint: dialled(id) }));
  const phones = [4, 5, 6, 7, 8].map((id) => peer(id, { via: { connector: id === 4 ? 1 : 2 } }));
  const map = network([...connectors, ...phones, peer(9, { via: { connector: 99 } }), peer(10)]);
  expect(describeDialled(map, new Set())).toEqual([]);
  expect(describeDialled(map, new Set([3, 10]))).toEqual([]);
  const remedy = 'a new profile through another one moves them';
  expect(describeDialled(map, new Set([1, 2]))).toEqual([
    `peer-1 does not answer here, and is the only connector of peer-4; ${remedy}`,
    `peer-2 does not answer here, and is the only connector of peer-5, peer-6, peer-7, peer-8; ${remedy}`,
  ]);
});
