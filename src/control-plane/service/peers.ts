import type { ChangePeer, Peer } from '../../contract/peer.ts';
import type { Prefix } from '../../core/cidr.ts';
import { InvalidValue, quote } from '../../core/errors.ts';
import { toLabel } from '../../core/hosts-label.ts';
import { isProven, type KeyProof, parseIdentityKey } from '../../core/identity.ts';
import { type PublicKey, parsePeerKey } from '../../core/keys.ts';
import type { Caller } from '../caller.ts';
import { Forbidden, InvalidRequest, NotFound } from '../errors.ts';
import { checkAll, readFields } from '../field-rules.ts';
import { checkEndpointOutside, parsePeerEndpoint, parseServedRoutes, parseWithdrawn } from '../network-rules.ts';
import { returnAddress, type StoredNetwork } from '../store/networks.ts';
import { mapPage, type Page, type Slice } from '../store/page.ts';
import * as store from '../store/peers.ts';
import type { Db } from '../store/tables.ts';
import { authorOf, changedFields, record } from './audit.ts';
import type { Context } from './context.ts';
import { holdNetwork, requireNetwork } from './networks.ts';
import { isServing, presentPeer } from './present.ts';
import { revising } from './revising.ts';

/** The peers of a network, in a list of their own. */
export async function listPeers({ db }: Context, caller: Caller, networkId: number, slice: Slice): Promise<Page<Peer>> {
  const network = await requireNetwork(db, caller, networkId);
  return mapPage(await store.listPeerPage(db, networkId, slice), (peer) => presentPeer(network, peer));
}

/**
 * Sets the fields given; what is the same already makes no revision, and counts for no limit. A peer may change itself, so often, but
 * not its routes and its priority: it may only take routes out of service, and put back what it took. A connector that had no route
 * in service and has one again is a newcomer.
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
    if (caller.kind === 'peer' && asked.priority !== undefined) {
      throw new Forbidden('a peer may not change its priority; ask an owner, admin or member');
    }
    const peer = await store.findPeer(transaction, networkId, id);
    if (!peer) throw new NotFound('peer');
    const [fields, label] = await checkPeerChange(transaction, asked, peer, network, context.onLoopback);
    const changed = changedFields(peer, fields);
    if (Object.keys(changed).length === 0) return presentPeer(network, peer);
    if (caller.kind === 'peer') context.peerChanges.take(id, takesOut(changed, peer, fields));
    const touch = await revise(networkId);
    const isBack = peer.peer_type === 'connector' && !isServing(network, peer) && isServing(network, fields);
    const serving_since = isBack ? context.now().toISOString() : peer.serving_since;
    const previous_key = changed.public_key === undefined ? peer.previous_key : peer.public_key;
    const updated = await store.updatePeer(transaction, networkId, id, {
      ...fields,
      label,
      serving_since,
      previous_key,
    });
    await touch(id);
    await record(transaction, authorOf(context, caller), {
      action: 'peer.update',
      target: { kind: 'peer', id, name: updated.name },
      details: { network: networkId, ...readable(changed) },
    });
    return presentPeer(network, updated);
  });
}

/** Refuses fields of a change that break a rule of the network or of the peer as they are. */
export async function checkChange(
  { db, onLoopback }: Context,
  caller: Caller,
  networkId: number,
  id: number,
  asked: ChangePeer,
): Promise<void> {
  const network = await requireNetwork(db, caller, networkId);
  checkSelf(caller, id);
  const peer = await store.findPeer(db, networkId, id);
  if (peer) await checkPeerChange(db, asked, peer, network, onLoopback);
}

/** The fields of a peer and its label after a change. */
async function checkPeerChange(
  db: Db,
  asked: ChangePeer,
  peer: store.StoredPeer,
  network: StoredNetwork,
  onLoopback: boolean,
) {
  const { name = peer.name, public_key = peer.public_key } = asked;
  return checkAll(
    () => readChange(asked, peer, network, onLoopback),
    () => takeLabel(db, peer, name),
    async () => {
      if (public_key !== peer.public_key) await checkKeyFree(db, network.id, public_key, peer.id);
    },
  );
}

/**
 * Refuses a public key that another peer of the network has, and one that it had before its last change: a peer whose new key nobody
 * answers to goes back to that.
 */
export async function checkKeyFree(db: Db, network: number, publicKey: string, except?: number): Promise<void> {
  const use = await store.findKeyUse(db, network, publicKey, except);
  if (use === null) return;
  const kept = 'is kept for another peer, which had it before its last change of keys; make another key pair';
  throw new InvalidRequest({ public_key: [use === 'present' ? 'is enrolled in this network already' : kept] });
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

/** True of a change that does nothing but take routes out of service. */
function takesOut(
  changed: object,
  peer: store.StoredPeer,
  { withdrawn }: Pick<store.StoredPeer, 'withdrawn'>,
): boolean {
  const after = new Set(JSON.parse(withdrawn) as Prefix[]);
  return (
    Object.keys(changed).join() === 'withdrawn' &&
    (JSON.parse(peer.withdrawn) as Prefix[]).every((each) => after.has(each))
  );
}

/** The label of a peer's name, which no other peer of its network may have. */
async function takeLabel(db: Db, peer: store.StoredPeer, name: string): Promise<string | null> {
  const label = toLabel(name) || null;
  if (label === null || label === peer.label) return label;
  const holder = await store.findLabelHolder(db, peer.network_id, label, peer.id);
  if (!holder) return label;
  throw new InvalidRequest({
    name: [
      `${quote(name)} is taken: peer ${holder.id} has the name ${quote(holder.name)}, which is ${label} too; choose another`,
    ],
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
): Required<Omit<store.PeerFields, 'label' | 'serving_since' | 'previous_key'>> {
  const { name = peer.name, public_key = peer.public_key, endpoint, routes, withdrawn } = asked;
  const { network_secret_tag = peer.network_secret_tag, priority = peer.priority } = asked;
  return readFields((read) => ({
    name,
    network_secret_tag,
    public_key: read(() => parsePeerKey(public_key)),
    endpoint: read(() => {
      if (endpoint === undefined) return peer.endpoint;
      if (endpoint === null) return null;
      const parsed = parsePeerEndpoint(endpoint, onLoopback);
      checkEndpointOutside(parsed, network);
      return parsed;
    }),
    priority: read(() => {
      if (priority !== peer.priority && peer.peer_type !== 'connector')
        throw new InvalidValue('priority', priority, 'can be given to a connector only');
      return priority;
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
