import { expect, it } from 'vitest';
import { findSecretLosses } from '../../../src/app/options/find-secret-losses.ts';
import { tagOf } from '../../../src/core/crypto/network-secret.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const secretOf = (byte: number) => new Secret(Buffer.alloc(32, byte).toString('base64'));
const [known, other] = [secretOf(7), secretOf(8)];
const plain = mapAt('"1"', [peer(2), peer(3)]);
const tagged = mapAt('"1"', [peer(2, { secretTag: tagOf(known) }), peer(3, { secretTag: tagOf(other) })]);

const find = async (map: NetworkMap, networkSecret: Secret | null | undefined, changes: Partial<Joined> = {}) => {
  const { tools } = await SimulatedHost.with(joinedTo(map, { networkSecret: known, ...changes }));
  return findSecretLosses(tools, undefined, networkSecret === undefined ? {} : { networkSecret });
};

it('another secret cuts off the peers that have the present one, or all others if none is known', async () => {
  expect(await find(tagged, other)).toEqual({ interface: 'cpn0', peers: ['peer-2'], isRemoval: false });
  expect(await find(plain, other)).toEqual({ interface: 'cpn0', peers: ['peer-2', 'peer-3'], isRemoval: false });
});

it('a removal cuts them off too, and a first secret those that have none', async () => {
  expect(await find(tagged, null)).toEqual({ interface: 'cpn0', peers: ['peer-2'], isRemoval: true });
  expect(await find(plain, other, { networkSecret: null })).toMatchObject({ peers: ['peer-2', 'peer-3'] });
});

it.each<[string, Secret | null | undefined, Partial<Joined>]>([
  ['no change', undefined, {}],
  ['the same secret', known, {}],
  ['a network that is down', other, { enabled: false }],
])('%s cuts off no peer', async (_, networkSecret, changes) => {
  expect(await find(plain, networkSecret, changes)).toBeNull();
});
