import type { EnrollRequest, Peer, PeerType } from '../../contract/peer.ts';
import { nameOnce, toLabel } from '../../core/hosts-label.ts';
import { type PublicKey, parsePeerKey } from '../../core/keys.ts';
import { Secret } from '../../core/secret.ts';
import { allocate, capacityOf } from '../address-allocation.ts';
import { Conflict, Forbidden, InvalidRequest, Unauthenticated } from '../errors.ts';
import { checkAll, readFields } from '../field-rules.ts';
import { checkEndpointOutside, parsePeerEndpoint } from '../network-rules.ts';
import { nextMoment, type Seen } from '../seen.ts';
import { holdKey, type StoredKey, takeUse } from '../store/enrollment-keys.ts';
import { findEnrollment, insertEnrollment } from '../store/enrollments.ts';
import * as networks from '../store/networks.ts';
import { countSuffixed, findLabelHolder, findPeer, insertPeer, type NewPeer, type StoredPeer } from '../store/peers.ts';
import type { Db } from '../store/tables.ts';
import { derivePeerToken, hashToken, mintToken, tokenPrefixes } from '../tokens.ts';
import { type Author, record } from './audit.ts';
import type { Context } from './context.ts';
import { checkKeyFree } from './peers.ts';
import { presentPeer, readLimits } from './present.ts';
import { type Revise, revising } from './revising.ts';

export interface Enrolled {
  readonly peer: Peer;
  /** Which network it is in now, and a revision of it that has the peer. */
  readonly network: { readonly id: number; readonly revision: Seen };
  readonly token: Secret;
}

/** What stands in the headers of an enrolment. */
interface Beside {
  readonly idempotencyKey: Secret | null;
  readonly identityKey: string | null;
  readonly secretTag: string | null;
  /** The networks that the host says it is in. */
  readonly currentNetworks: readonly number[];
}

/**
 * Lets a host into the network of its enrolment key, for one use of the key. With an idempotency key, a repetition gets
 * the same peer, address and token again and uses nothing, even when the key has no use left or has expired; a revoked
 * key gives nothing to anybody. A refusal uses nothing either.
 */
export async function enroll(
  context: Context,
  request: EnrollRequest,
  { idempotencyKey, identityKey, secretTag, currentNetworks }: Beside,
  address: string,
): Promise<Enrolled> {
  const { publicKey, endpoint } = readEnrollment(context, request);
  const keyToken = new Secret(request.enrollment_token);
  const { network, ...enrolled } = await revising(context, async (db, revise) => {
    const key = await holdKey(db, hashToken(keyToken));
    if (!key) throw new Unauthenticated('the enrolment key is unknown');
    if (key.revoked_at !== null) throw new Forbidden('the enrolment key was revoked');
    const identity = idempotencyKey && {
      enrollment_key_id: key.id,
      public_key: publicKey,
      idempotency_hash: hashToken(idempotencyKey),
    };
    const earlier = identity && (await findEnrollment(db, identity));
    if (earlier) {
      const peer = await findPeer(db, key.network_id, earlier.peer_id);
      if (!peer) throw new Error('an enrolment outlived its peer');
      const token = derivePeerToken(keyToken, idempotencyKey, earlier.token_salt);
      return present(await networks.readNetwork(db, key.network_id), peer, token);
    }
    if (currentNetworks.includes(key.network_id)) throw alreadyIn(await networks.readNetwork(db, key.network_id));
    const { types, routes } = readLimits(key);
    const type = request.peer_type ?? 'origin';
    if (types !== null && !types.includes(type)) throw notAllowed(type, types);
    const salt = Buffer.from(context.random(32)).toString('base64url');
    const token = idempotencyKey
      ? derivePeerToken(keyToken, idempotencyKey, salt)
      : mintToken(tokenPrefixes.peer, context.random);
    const now = context.now().toISOString();
    if (!(await takeUse(db, key.id, now))) throw unusable(key, now);
    const { peer, network } = await addPeer(db, revise, {
      network_id: key.network_id,
      name: request.name,
      peer_type: type,
      public_key: publicKey,
      endpoint,
      routes: type === 'connector' && routes !== null ? JSON.stringify(routes) : null,
      serving_since: type === 'connector' ? now : null,
      identity_key: identityKey,
      network_secret_tag: secretTag,
      token_hash: hashToken(token),
      created_at: now,
    });
    const { public_key, peer_type } = peer;
    await record(db, await authorOfEnrollment(context, db, key, address), {
      action: 'peer.enroll',
      target: { kind: 'peer', id: peer.id, name: peer.name },
      details: {
        ...{ network: key.network_id, address: peer.address, public_key, peer_type, endpoint: peer.endpoint },
        ...(peer.name !== request.name && { name_asked: request.name }),
      },
    });
    if (identity) await insertEnrollment(db, { ...identity, peer_id: peer.id, token_salt: salt });
    return present(network, peer, token);
  });
  // Only what was read from here on is sure to have the peer.
  const { id, revision, nonce } = network;
  return { ...enrolled, network: { id, revision: { revision, nonce, at: nextMoment() } } };
}

async function authorOfEnrollment({ readTime }: Context, db: Db, key: StoredKey, address: string): Promise<Author> {
  const organizationId = await networks.readOrganizationOf(db, key.network_id);
  return { organizationId, actor: { kind: 'enrollment_key', id: key.id, name: key.name }, address, readTime };
}

interface Keyed {
  readonly publicKey: PublicKey;
  readonly endpoint: string | null;
}

/** Reads public key and endpoint of an enrolment; what is left out is null. */
export function readEnrollment(context: Context, request: EnrollRequest): Keyed;
export function readEnrollment(context: Context, request: Partial<EnrollRequest>): object;
export function readEnrollment({ onLoopback }: Context, { public_key, endpoint }: Partial<EnrollRequest>): object {
  return readFields((read) => ({
    publicKey: read(() => (public_key === undefined ? null : parsePeerKey(public_key))),
    endpoint: read(() => (endpoint === undefined ? null : parsePeerEndpoint(endpoint, onLoopback))),
  }));
}

interface Added {
  readonly peer: StoredPeer;
  readonly network: networks.StoredNetwork;
}

/** Adds the peer at the next address of the network, under its name or, where that is taken, with a suffix to it. */
async function addPeer(
  db: Db,
  revise: Revise,
  asked: Omit<NewPeer, 'address' | 'label' | 'previous_key'>,
): Promise<Added> {
  const id = asked.network_id;
  const touch = await revise(id);
  const network = await networks.readNetwork(db, id);
  const { range } = network;
  const { endpoint } = asked;
  await checkAll(
    () => checkKeyFree(db, id, asked.public_key),
    () => readFields((read) => ({ endpoint: read(() => endpoint && checkEndpointOutside(endpoint, network)) })),
  );
  const name = await findFreeName(db, id, asked.name);
  const peer = { ...asked, name, label: toLabel(name) || null };
  for (;;) {
    const next = allocate({ range, ...(await networks.readAddressUse(db, id)) });
    if (!next) throw networkFull(range);
    await (next.fresh ? networks.countAddress(db, id) : networks.reuseAddress(db, id, next.address));
    // An address that is taken against all records, as after a repair by hand, is passed over.
    const added = await insertPeer(db, { ...peer, address: next.address });
    if (!added) continue;
    await touch(added.id);
    return { peer: added, network };
  }
}

/** The name, or where another peer has its label, the name with the first suffix that makes it one. */
async function findFreeName(db: Db, network: number, name: string): Promise<string> {
  const label = toLabel(name);
  if (label === '' || !(await findLabelHolder(db, network, label))) return name;
  // Of thousands that have one name not all suffixes are tried.
  for (let suffix = 2 + (await countSuffixed(db, network, label)); ; suffix += 1) {
    const suffixed = nameOnce(name, () => false, suffix);
    if (!(await findLabelHolder(db, network, toLabel(suffixed)))) return suffixed;
  }
}

function present(network: networks.StoredNetwork, peer: StoredPeer, token: Secret) {
  return { peer: presentPeer(network, peer), network, token };
}

function alreadyIn({ id, name }: networks.StoredNetwork): Conflict {
  return new Conflict(`the enrolment key is for network ${name} (${id}), which this host is in already`);
}

function notAllowed(type: PeerType, types: readonly PeerType[]): Forbidden {
  return new Forbidden(
    `the enrolment key is for peers of type ${types.join(' or ')}, and this one is of type ${type}; enrol as a type of the key, or with another key`,
  );
}

function unusable(key: StoredKey, now: string): Forbidden {
  return new Forbidden(key.expires_at <= now ? 'the enrolment key has expired' : 'the enrolment key is used up');
}

function networkFull(range: Parameters<typeof capacityOf>[0]): InvalidRequest {
  return new InvalidRequest({ private_cidr: [`${range} is full: all its ${capacityOf(range)} addresses are in use`] });
}
