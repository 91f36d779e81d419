import type { ChangePeer, Peer } from '../../contract/peer.ts';
import { InvalidValue } from '../../core/errors.ts';
import { isProven, type KeyProof, parseIdentityKey } from '../../core/identity.ts';
import { type PublicKey, parsePeerKey } from '../../core/keys.ts';
import type { Caller } from '../caller.ts';
import { Forbidden, InvalidRequest, NotFound } from '../errors.ts';
import { readFields } from '../field-rules.ts';
import { parsePeerEndpoint, parseServedRoutes, parseWithdrawn } from '../network-rules.ts';
import { returnAddress, type StoredNetwork } from '../store/networks.ts';
import * as store from '../store/peers.ts';
import { authorOf, changedFields, record } from './audit.ts';
import type { Context } from './context.ts';
import { holdNetwork } from './networks.ts';
import { presentPeer } from './present.ts';
import { revising } from './revising.ts';

/**
 * Sets the fields given; what is the same already makes no revision. A peer may change itself, but not its routes: it may only
 * take them out of service, and put back what it took.
 */
export async function changePeer(
  context: Context,
  caller: Caller,
  networkId: number,
  id: number,
  asked: ChangePeer,
): Promise<Peer> {
  return revising(context, async (transaction, revise) => {
    const network = await holdNetwork(transaction, caller, networkId);
    checkSelf(caller, id);
    if (caller.kind === 'peer' && asked.routes !== undefined) {
      throw new Forbidden('a peer may not change which routes it serves; ask an owner, admin or member');
    }
    const peer = await store.findPeer(transaction, networkId, id);
    if (!peer) throw new NotFound('peer');
    const fields = readChange(asked, peer, network, context.onLoopback);
    const changed = changedFields(peer, fields);
    if (Object.keys(changed).length === 0) return presentPeer(network, peer);
    const touch = await revise(networkId);
    if (await store.isKeyEnrolled(transaction, networkId, fields.public_key, id)) {
      throw new InvalidRequest({ public_key: ['is enrolled in this network already'] });
    }
    const updated = await store.updatePeer(transaction, networkId, id, fields);
    await touch(id);
    await record(transaction, authorOf(context, caller), {
      action: 'peer.update',
      target: { kind: 'peer', id, name: updated.name },
      details: { network: networkId, ...readable(changed) },
    });
    return presentPeer(network, updated);
  });
}

/** Takes a peer out of its network. Its address is given again when there is no other left; its token is void. */
export async function removePeer(context: Context, caller: Caller, networkId: number, id: number): Promise<void> {
  await revising(context, async (transaction, revise) => {
    await holdNetwork(transaction, caller, networkId);
    checkSelf(caller, id);
    const touch = await revise(networkId);
    const removed = await store.deletePeer(transaction, networkId, id);
    if (!removed) throw new NotFound('peer');
    await touch(id);
    const { name, address } = removed;
    await returnAddress(transaction, networkId, address);
    await record(transaction, authorOf(context, caller), {
      action: 'peer.delete',
      target: { kind: 'peer', id, name },
      details: { network: networkId, address },
    });
  });
}

function checkSelf(caller: Caller, id: number): void {
  if (caller.kind === 'peer' && caller.peerId !== id) throw new Forbidden('a peer may change or remove only itself');
}

/** Lists, which the database keeps as text, as lists. */
function readable(changed: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(changed).map(([name, value]) => {
    const isList = (name === 'routes' || name === 'withdrawn') && typeof value === 'string';
    return [name, isList ? JSON.parse(value) : value];
  });
  return Object.fromEntries(entries);
}

function readChange(
  asked: ChangePeer,
  peer: store.StoredPeer,
  network: StoredNetwork,
  onLoopback: boolean,
): Required<store.PeerFields> {
  const { name = peer.name, public_key = peer.public_key, endpoint, routes, withdrawn } = asked;
  const { network_secret_tag = peer.network_secret_tag } = asked;
  return readFields((read) => ({
    name,
    network_secret_tag,
    public_key: read(() => parsePeerKey(public_key)),
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
    withdrawn: read(() => {
      if (withdrawn === undefined) return peer.withdrawn;
      if (peer.peer_type !== 'connector') throw new InvalidValue('withdrawn', withdrawn, 'is for connectors only');
      return JSON.stringify(parseWithdrawn(withdrawn, network));
    }),
    key_proof: read(() => {
      if (asked.key_proof !== undefined) return checkProof(asked.key_proof, public_key as PublicKey, peer);
      return public_key === peer.public_key ? peer.key_proof : null;
    }),
  }));
}

/** A proof for the key that the peer has or gets, newer than the one before. */
function checkProof(proof: KeyProof, publicKey: PublicKey, peer: store.StoredPeer): string {
  const { identity_key, key_proof } = peer;
  if (identity_key === null)
    throw new InvalidValue('key_proof', proof, 'is given, but the peer enrolled without an identity key');
  if (!isProven(parseIdentityKey(identity_key), publicKey, proof)) {
    throw new InvalidValue('key_proof', proof, "is not signed by the peer's identity key for its public key");
  }
  const before = key_proof === null ? null : (JSON.parse(key_proof) as KeyProof);
  const isSame = before?.serial === proof.serial && before.signature === proof.signature;
  if (before && !isSame && before.serial >= proof.serial) {
    throw new InvalidValue('key_proof', proof, `has a serial that is not higher than ${before.serial}, the one before`);
  }
  return JSON.stringify({ serial: proof.serial, signature: proof.signature });
}
