import { describe, expect, it } from 'vitest';
import { tryRemoval } from '../../../src/app/networks/remove-peer.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { Refused } from '../../../src/core/errors/index.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import type { HostStore } from '../../../src/store/store.ts';
import { dialled, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const two = peer(2, { endpoint: dialled(2) });
const map = mapAt('"1"', [two]);
const without: NetworkMap = { ...map, peers: [two] };
const own = joinedTo(map);
const personal: Joined = {
  ...own,
  membership: { ...own.membership, accessToken: null, personalToken: new Secret('user') },
};
const refuse = (status: number, reasoned: boolean) => new Refused(status, 'this', 'no', null, { reasoned });

/** The result of a removal that the service does not confirm, or refuses, and the reply after it. */
async function remove(state: Joined, removal: Refused | false, reply: NetworkMap | Refused | null = null) {
  const { tools, service } = await SimulatedHost.with(state);
  service.onRemovePeer = () => {
    if (removal !== false) throw removal;
    return false;
  };
  service.mapReplies = [
    () => {
      if (reply instanceof Refused) throw reply;
      return { map: reply, waited: false };
    },
  ];
  return (await tryRemoval(tools, state)) === null;
}

const skipped = { id: 1, name: 'peer-1', publicKey: null, address: null, reason: 'its key is no key' };
const provided = { ...map, peers: [peer(1, { unlisted: true }), two] };

describe('a peer is removed', () => {
  it.each<[string, boolean, Joined, Refused | false, NetworkMap | Refused | null]>([
    ['if its own token is void', true, own, refuse(401, true), null],
    ['not if a personal token is void', false, personal, refuse(401, true), null],
    ['if the network no longer lists it', true, own, false, without],
    ['not if the network lists it', false, own, false, map],
    ['not if the network lists it as unusable', false, own, false, { ...without, skipped: [skipped] }],
    ['not if the service sends no map', false, own, false, null],
    ['not if the service never listed it', false, joinedTo(provided), false, without],
    ['if its own token is void when the network is read', true, own, false, refuse(401, true)],
    ['if a personal token finds no such network, with a reason', true, personal, false, refuse(404, true)],
    ['not if something replies without a reason', false, personal, false, refuse(404, false)],
    ['not if a personal token is void when the network is read', false, personal, false, refuse(401, true)],
  ])('%s', async (_, isRemoved, state, removal, reply) => {
    expect(await remove(state, removal, reply)).toBe(isRemoved);
  });

  it('under the lock of its caller, which is not taken again for a description that was never read', async () => {
    const { tools, service } = await SimulatedHost.with({ ...own, features: null });
    service.onRemovePeer = () => true;
    const lock: HostStore['lock'] = () => Promise.reject(new Error('locked twice'));
    expect(await tryRemoval({ ...tools, store: { ...tools.store, lock } }, { ...own, features: null })).toBeNull();
  });
});
