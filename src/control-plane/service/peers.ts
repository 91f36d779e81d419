import { isDeepStrictEqual } from 'node:util';
import type { ChangePeer, Peer } from '../../contract/peer.ts';
import { InvalidValue } from '../../core/errors.ts';
import { parsePublicKey } from '../../core/keys.ts';
import type { Caller } from '../caller.ts';
import { Forbidden, InvalidRequest, NotFound } from '../errors.ts';
import { readFields } from '../field-rules.ts';
import { parsePeerEndpoint, parseServedRoutes } from '../network-rules.ts';
import { returnAddress, type StoredNetwork } from '../store/networks.ts';
import * as store from '../store/peers.ts';
import type { Context } from './context.ts';
import { requireNetwork } from './networks.ts';
import { presentPeer } from './present.ts';
import { revising } from './revising.ts';

/** Sets the fields given; what is the same already makes no revision. A peer may change itself, but not its routes. */
export async function changePeer(
  context: Context,
  caller: Caller,
  networkId: number,
  id: number,
  asked: ChangePeer,
): Promise<Peer> {
  return revising(context, async (transaction, revise) => {
    const network = await requireNetwork(transaction, caller, networkId);
    checkSelf(caller, id);
    if (caller.kind === 'peer' && asked.routes !== undefined) {
      throw new Forbidden('a peer may not change which routes it serves; ask an owner, admin or member');
    }
    const peer = await store.findPeer(transaction, networkId, id);
    if (!peer) throw new NotFound('peer');
    const fields = readChange(asked, peer, network, context.onLoopback);
    if (isDeepStrictEqual({ ...peer, ...fields }, { ...peer })) return presentPeer(network, peer);
    await revise(networkId);
    if (await store.isKeyEnrolled(transaction, networkId, fields.public_key, id)) {
      throw new InvalidRequest({ public_key: ['is enrolled in this network already'] });
    }
    return presentPeer(network, await store.updatePeer(transaction, networkId, id, fields));
  });
}

/** Takes a peer out of its network. Its address is given again when there is no other left; its token is void. */
export async function removePeer(context: Context, caller: Caller, networkId: number, id: number): Promise<void> {
  await revising(context, async (transaction, revise) => {
    await requireNetwork(transaction, caller, networkId);
    checkSelf(caller, id);
    await revise(networkId);
    const address = await store.deletePeer(transaction, networkId, id);
    if (address === undefined) throw new NotFound('peer');
    await returnAddress(transaction, networkId, address);
  });
}

function checkSelf(caller: Caller, id: number): void {
  if (caller.kind === 'peer' && caller.peerId !== id) throw new Forbidden('a peer may change or remove only itself');
}

function readChange(
  asked: ChangePeer,
  peer: store.StoredPeer,
  network: StoredNetwork,
  onLoopback: boolean,
): Required<store.PeerFields> {
  const { name = peer.name, public_key = peer.public_key, endpoint, routes } = asked;
  return readFields((read) => ({
    name,
    public_key: read(() => parsePublicKey(public_key)),
    endpoint: read(() => {
      if (endpoint === undefined) return peer.endpoint;
      return endpoint === null ? null : parsePeerEndpoint(endpoint, onLoopback);
    }),
    routes: read(() => {
      if (routes === undefined) return peer.routes;
      if (routes === null) return null;
      if (peer.peer_type !== 'connector') throw new InvalidValue('routes', routes, 'can be given to a connector only');
      return JSON.stringify(parseServedRoutes(routes, network.routes));
    }),
  }));
}
