import { createHash } from 'node:crypto';
import type { EnrollRequest, Peer, PeerType } from '../../../contract/peer.ts';
import { digestPeer, type PublicKey, parsePeerKey } from '../../../core/crypto/keys.ts';
import { Secret } from '../../../core/crypto/secret.ts';
import type { Address } from '../../../core/net/cidr.ts';
import { readFields } from '../../domain/field-rules.ts';
import { parsePeerEndpoint } from '../../domain/network-rules.ts';
import { derivePeerToken, hashToken, mintToken, tokenPrefixes } from '../../domain/tokens.ts';
import { Conflict, Forbidden, PreconditionFailed, Unauthenticated } from '../../errors.ts';
import type { MapText } from '../../push/map-cache.ts';
import { nextLogicalTime, type ObservedRevision } from '../../push/snapshot.ts';
import { toPeer } from '../../push/to-contract.ts';
import { createWaitingMap, toWaitingPeer } from '../../push/waiting-map.ts';
import { hasUse, lockKey, type StoredKey, takeUse } from '../../store/enrollment-keys.ts';
import * as networks from '../../store/networks.ts';
import { findEnrollment, insertEnrollment } from '../../store/peers/enrollments.ts';
import { listKeys } from '../../store/peers/peer-lists.ts';
import { findByIdentity, findPeer, isWaiting, nextServingSince, type StoredPeer } from '../../store/peers/peers.ts';
import type { Db } from '../../store/tables.ts';
import { type Author, record } from '../audit.ts';
import type { Context } from '../context.ts';
import { type DeviceOwner, requireDeviceOwner } from '../devices-of-user.ts';
import { createAttemptCounts } from '../peer-change-limit.ts';
import { refuseUnlisted } from '../suspension.ts';
import { peerEvent, withRevision } from '../with-revision.ts';
import { addPeer } from './add-peer.ts';
import { describeWaiting } from './approval.ts';
import { type IdentityHeaders, readIdentity } from './claimed-identity.ts';
import { makeProfile } from './device-profile.ts';
import { readKeyLimits } from './enrollment-keys.ts';
import { replacePeer } from './replace-peer.ts';

const hourMs = 3_600_000;

export interface Enrolled {
  readonly peer: Peer;
  /** The id of its network, and a revision that includes the peer. */
  readonly network: { readonly id: number; readonly revision: ObservedRevision };
  /** Its map while it waits for approval; null if it does not. */
  readonly waitingMap: MapText | null;
  readonly token: Secret;
}

interface EnrollOptions {
  readonly idempotencyKey: Secret | null;
  readonly identity: IdentityHeaders;
  readonly secretTag: string | null;
  /** The networks in the host's Current-Networks header. */
  readonly currentNetworks: readonly number[];
  /** Digests of the host's public keys in networks of other control plane URLs. */
  readonly currentPeers: readonly string[];
}

/**
 * With an idempotency key, a replay gets the same peer, address and token, and takes no use, even
 * if the key is used up or expired. A revoked key is always refused. A refusal takes no use. A host
 * that proves a peer's identity replaces that peer, even if the host is in the network.
 */
export async function enroll(
  context: Context,
  request: EnrollRequest,
  { idempotencyKey, identity: headers, secretTag, currentNetworks, currentPeers }: EnrollOptions,
  address: string,
): Promise<Enrolled> {
  const { publicKey, endpoint } = readEnrollment(context, request);
  const keyToken = new Secret(request.enrollment_token);
  const identity = readIdentity(headers, { publicKey, tokenHash: sha256(keyToken) });
  const counts = createAttemptCounts();
  const { network, ...enrolled } = await withRevision(context, async (db, revise, append) => {
    counts.restart();
    const key = await lockKey(db, hashToken(keyToken));
    if (!key) throw new Unauthenticated('the enrolment key is unknown');
    if (key.revoked_at !== null) throw new Forbidden('the enrolment key was revoked');
    const enrollment = idempotencyKey && {
      enrollment_key_id: key.id,
      public_key: publicKey,
      idempotency_hash: hashToken(idempotencyKey),
    };
    const earlier = enrollment && (await findEnrollment(db, enrollment));
    if (earlier) {
      const peer = await findPeer(db, key.network_id, earlier.peer_id);
      if (!peer) throw new Error('an enrolment outlived its peer');
      refuseUnlisted(peer, context.now());
      const token = derivePeerToken(keyToken, idempotencyKey, earlier.token_salt);
      return toEnrolled(await networks.readNetwork(db, key.network_id), peer, token);
    }
    const own = identity?.isProven ? await findByIdentity(db, key.network_id, identity.key) : undefined;
    if (own) refuseUnlisted(own, context.now());
    const at = context.now();
    const now = at.toISOString();
    // Before the checks that reveal the network or cost more than a guess may cost.
    if (!hasUse(key, now)) throw unusable(key, now);
    if (!own && currentNetworks.includes(key.network_id))
      throw alreadyIn(await networks.readNetwork(db, key.network_id));
    if (!own && currentPeers.length > 0) await refuseListed(db, key.network_id, new Set(currentPeers));
    const owner = await requireDeviceOwner(db, key, own);
    const { types, routes } = readKeyLimits(key);
    const type = request.peer_type ?? 'origin';
    if (types !== null && !types.includes(type)) throw notAllowed(type, types);
    context.enrollmentLimit.check(key.network_id);
    const profile = await makeProfile(db, key.network_id, request);
    const salt = Buffer.from(context.random(32)).toString('base64url');
    const token = idempotencyKey
      ? derivePeerToken(keyToken, idempotencyKey, salt)
      : mintToken(tokenPrefixes.peer, context.random);
    if (!(await takeUse(db, key.id, now))) throw unusable(key, now);
    const asked = {
      peer_type: type,
      public_key: publicKey,
      endpoint,
      serving_since: type === 'connector' ? await nextServingSince(db, key.network_id, at) : null,
      ...endOf(key, at, own, owner),
      // A user that may make keys must not free its device with one.
      user_id: owner?.id ?? own?.user_id ?? null,
      user_email: owner?.email ?? own?.user_email ?? null,
      network_secret_tag: secretTag,
      follows_relay: request.follows_relay ? (1 as const) : (0 as const),
      enforces_rules: request.enforces_rules ? (1 as const) : (0 as const),
      tags: key.tags,
      profile,
      token_hash: hashToken(token),
    };
    const keyProof = identity?.keyProof ?? null;
    const { peer, network } = own
      ? await replacePeer(db, revise, own, { ...asked, keyProof, routes })
      : await addPeer(db, revise, identity, {
          ...asked,
          network_id: key.network_id,
          name: request.name,
          routes: type === 'connector' && routes !== null ? JSON.stringify(routes) : null,
          key_proof: keyProof && JSON.stringify(keyProof),
          created_at: now,
        });
    const { public_key, peer_type } = peer;
    await record(db, await authorOfEnrollment(context, db, key, address, owner), {
      action: own ? 'peer.replace' : owner ? 'peer.self_enroll' : 'peer.enroll',
      target: { kind: 'peer', id: peer.id, name: peer.name },
      details: {
        ...{ network: key.network_id, address: peer.address, public_key, peer_type, endpoint: peer.endpoint },
        ...(peer.name !== request.name && { name_asked: request.name }),
        ...(peer.expires_at !== null && { expires_at: peer.expires_at }),
        ...(isWaiting(peer) && { awaiting_approval: peer.awaiting_approval }),
        ...(peer.tags !== null && { tags: JSON.parse(peer.tags) }),
        ...(request.profile && { connector: request.profile.connector }),
      },
    });
    const by = owner && { user: owner.email };
    if (!isWaiting(peer))
      append(key.network_id, peerEvent('peer.enrolled', peer, { reason: own ? 'replaced' : 'enrolled', ...by }));
    else if (!own)
      append(key.network_id, peerEvent('peer.awaiting_approval', peer, { ...describeWaiting(peer), ...by }));
    if (enrollment) await insertEnrollment(db, { ...enrollment, peer_id: peer.id, token_salt: salt });
    counts.add(context.enrollmentLimit.take(key.network_id, true));
    return toEnrolled(network, peer, token);
  });
  if (enrolled.peer.expires_at !== undefined) context.rescheduleExpiry();
  // Only reads after this point are certain to include the peer.
  const { id, revision, nonce } = network;
  return { ...enrolled, network: { id, revision: { revision, nonce, at: nextLogicalTime() } } };
}

/**
 * When an enrolling peer expires; null for never. Replacements do not extend it, only users do: an
 * own device has the time that each login gives it, unless an admin set another, whatever the key.
 */
function endOf({ peer_hours }: StoredKey, now: Date, own: StoredPeer | undefined, owner: DeviceOwner | null) {
  const after = (hours: number) => new Date(now.getTime() + hours * hourMs).toISOString();
  const isSet = own !== undefined && own.expires_at !== null && own.reauth_hours === 0;
  if (isSet) return { expires_at: own.expires_at, reauth_hours: 0 };
  if (own && own.user_email !== null && !owner) return { expires_at: own.expires_at, reauth_hours: own.reauth_hours };
  if (owner)
    return { expires_at: owner.reauthHours > 0 ? after(owner.reauthHours) : null, reauth_hours: owner.reauthHours };
  return { expires_at: peer_hours === null ? null : after(peer_hours), reauth_hours: 0 };
}

function sha256(token: Secret): string {
  return createHash('sha256').update(token.reveal()).digest('hex');
}

async function authorOfEnrollment(
  { readTime }: Context,
  db: Db,
  key: StoredKey,
  address: string,
  owner: DeviceOwner | null,
): Promise<Author> {
  const organizationId = await networks.readOrganizationOf(db, key.network_id);
  const actor = owner
    ? ({ kind: 'user', id: owner.id, name: owner.email } as const)
    : ({ kind: 'enrollment_key', id: key.id, name: key.name } as const);
  return { organizationId, actor, address, readTime };
}

interface Keyed {
  readonly publicKey: PublicKey;
  readonly endpoint: string | null;
}

/** Parses the public key and endpoint of an enrolment; a missing field is null. */
export function readEnrollment(context: Context, request: EnrollRequest): Keyed;
export function readEnrollment(context: Context, request: Partial<EnrollRequest>): object;
export function readEnrollment({ onLoopback }: Context, { public_key, endpoint }: Partial<EnrollRequest>): object {
  return readFields((read) => ({
    publicKey: read(() => (public_key === undefined ? null : parsePeerKey(public_key))),
    endpoint: read(() => (endpoint === undefined ? null : parsePeerEndpoint(endpoint, onLoopback))),
  }));
}

function toEnrolled(network: networks.StoredNetwork, peer: StoredPeer, token: Secret) {
  if (!isWaiting(peer)) return { peer: toPeer(network, peer), network, token, waitingMap: null };
  return { peer: toWaitingPeer(network, peer), network, token, waitingMap: createWaitingMap(network, peer) };
}

/** Refuses a host that is in the network through another URL, so that it is not a second peer. */
async function refuseListed(db: Db, network: number, digests: ReadonlySet<string>): Promise<void> {
  const listed = (await listKeys(db, network)).find(({ public_key, address }) =>
    digests.has(digestPeer({ publicKey: public_key as PublicKey, address: address as Address })),
  );
  if (!listed) return;
  const { id, name } = await networks.readNetwork(db, network);
  throw new PreconditionFailed(
    `the enrolment key is for network ${name} (${id}), which lists this host already, as ${listed.name} (${listed.id})`,
  );
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
