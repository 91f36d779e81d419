import type { ChangePeer } from '../../contract/peer.ts';
import { isProven, type KeyProof, parseIdentityKey } from '../../core/crypto/identity.ts';
import { type PublicKey, parsePeerKey } from '../../core/crypto/keys.ts';
import { InvalidValue, quote } from '../../core/errors/index.ts';
import { checkAll, readFields } from '../domain/field-rules.ts';
import {
  checkEndpointOutside,
  parsePeerEndpoint,
  parseServedRoutes,
  parseTags,
  parseWithdrawn,
} from '../domain/network-rules.ts';
import { labelOf } from '../domain/peer-label.ts';
import { InvalidRequest } from '../errors.ts';
import type { StoredNetwork } from '../store/networks.ts';
import { type FieldColumn, listedFieldColumns } from '../store/peer-columns.ts';
import { findLabelHolder } from '../store/peers/labels.ts';
import * as store from '../store/peers/peers.ts';
import type { Db } from '../store/tables.ts';
import type { Context } from './context.ts';
import { readSuspension } from './suspension.ts';

export async function checkPeerChange(
  context: Context,
  db: Db,
  asked: ChangePeer,
  peer: store.StoredPeer,
  network: StoredNetwork,
) {
  const { name = peer.name, public_key = peer.public_key } = asked;
  return checkAll(
    () => readChange(context, asked, peer, network),
    () => takeLabel(db, peer, name),
    async () => {
      if (public_key !== peer.public_key) await checkKeyFree(db, network.id, public_key, peer.id);
    },
  );
}

/** Refuses previous keys too: a peer whose new key gets no handshake returns to them. */
export async function checkKeyFree(db: Db, network: number, publicKey: string, except?: number): Promise<void> {
  const use = await store.findKeyUse(db, network, publicKey, except);
  if (use === null) return;
  const kept = 'is kept for another peer, which had it before its last change of keys; make another key pair';
  throw new InvalidRequest({ public_key: [use === 'present' ? 'is enrolled in this network already' : kept] });
}

/** The label of a peer's name. Refuses a label that another peer of the network has or had. */
async function takeLabel(db: Db, peer: store.StoredPeer, name: string): Promise<string | null> {
  if (name === peer.name) return peer.label;
  const label = labelOf(name) || null;
  if (label === null || label === peer.label) return label;
  const holder = await findLabelHolder(db, peer.network_id, label, peer.id);
  if (!holder) return label;
  if (holder.isFormer) {
    const peer = `peer ${quote(holder.name)} (${holder.id})`;
    const problem = `has the host name ${label}, an earlier one of ${peer}`;
    throw new InvalidRequest({ name: [`${quote(name)} ${problem}; remove ${peer}, or choose another name`] });
  }
  const problem =
    holder.name === name
      ? `is the name of peer ${holder.id} already`
      : `has the host name ${label}, which peer ${holder.id} (${quote(holder.name)}) has already`;
  throw new InvalidRequest({ name: [`${quote(name)} ${problem}; choose another name`] });
}

function readChange({ onLoopback, now }: Context, asked: ChangePeer, peer: store.StoredPeer, network: StoredNetwork) {
  const { name = peer.name, public_key = peer.public_key, priority = peer.priority } = asked;
  const { endpoint, routes, withdrawn } = asked;
  const checked = readFields((read) => ({
    ...readSuspension(read, asked, peer, now()),
    name,
    public_key: read(() => parsePeerKey(public_key)),
    endpoint: read(() => {
      if (endpoint === undefined) return peer.endpoint;
      if (endpoint === null) return null;
      const parsed = parsePeerEndpoint(endpoint, onLoopback);
      checkEndpointOutside(parsed, network);
      if (peer.profile !== null)
        throw new InvalidValue('endpoint', endpoint, 'is not for a peer that is reached through a connector alone');
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
    masquerades: read(() => {
      const { masquerades } = asked;
      if (masquerades === undefined) return peer.masquerades;
      if (peer.peer_type !== 'connector') throw new InvalidValue('masquerades', masquerades, 'is for connectors only');
      return masquerades ? 1 : 0;
    }),
    tags: read(() => {
      if (asked.tags === undefined) return peer.tags;
      const tags = parseTags(asked.tags);
      return tags && JSON.stringify(tags);
    }),
    key_proof: read(() => {
      if (asked.key_proof !== undefined) return checkProof(asked.key_proof, public_key as PublicKey, peer);
      return public_key === peer.public_key ? peer.key_proof : null;
    }),
  }));
  return { ...checked, ...takeFields(asked, checked) };
}

/** The fields in `asked` that have a column and no rule but their schema. */
function takeFields(asked: ChangePeer, checked: object): Partial<Pick<store.StoredPeer, FieldColumn>> {
  const given = new Map<string, unknown>(Object.entries(asked));
  const taken: Record<string, unknown> = {};
  for (const [name, kind] of listedFieldColumns) {
    const value = Object.hasOwn(checked, name) ? undefined : given.get(name);
    if (value !== undefined) taken[name] = kind === 'json' && value !== null ? JSON.stringify(value) : value;
  }
  return taken;
}

/** Checks that a proof is for the peer's public key and newer than the stored proof. */
export function checkProof(proof: KeyProof, publicKey: PublicKey, peer: store.StoredPeer, field = 'key_proof'): string {
  const { identity_key, key_proof } = peer;
  if (identity_key === null)
    throw new InvalidValue(field, proof, 'is given, but the peer enrolled without an identity key');
  if (!isProven(parseIdentityKey(identity_key), publicKey, proof)) {
    throw new InvalidValue(field, proof, "is not signed by the peer's identity key for its public key");
  }
  const before = key_proof === null ? null : (JSON.parse(key_proof) as KeyProof);
  const isSame = before?.serial === proof.serial && before.signature === proof.signature;
  if (before && !isSame && before.serial >= proof.serial) {
    throw new InvalidValue(field, proof, `has a serial that is not higher than ${before.serial}, the previous one`);
  }
  return JSON.stringify({ serial: proof.serial, signature: proof.signature });
}
