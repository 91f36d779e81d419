import * as z from 'zod';
import type { CreateEnrollmentKey, EnrollmentKey, NewEnrollmentKey } from '../../contract/enrollment-key.ts';
import { Approval, type NetworkSummary as NetworkSummaryReply, RouteDns, SelfEnroll } from '../../contract/network.ts';
import { ListedPeer, PeerType } from '../../contract/peer.ts';
import { fingerprintOf } from '../../core/crypto/fingerprint.ts';
import { parsePeerKey } from '../../core/crypto/keys.ts';
import type { Secret } from '../../core/crypto/secret.ts';
import type { ConnectorProfile } from '../../core/export/device-profile.ts';
import type { Id, Peer, PeerId } from '../../core/map/model.ts';
import { listedPeerFields, peerFields } from '../../core/map/peer-fields.ts';
import { parseRange } from '../../core/net/cidr.ts';
import { formatEndpoint, parseEndpoint } from '../../core/net/endpoint.ts';
import { tagPattern } from '../../core/rules/selector.ts';
import { aliases } from '../aliases.ts';
import { decodeId, Field, type Source } from './field.ts';
import { decodeToken } from './map.ts';
import { decodeNetwork, decodePeer, decodePeers, maxPeers } from './network.ts';

/** `Whole`, with null for fields in `Gaps` that a service omits. */
type WithGaps<Whole, Gaps extends keyof Whole> = Omit<Whole, Gaps> & { readonly [Gap in Gaps]: Whole[Gap] | null };

/** `Whole`, with the id in the service's form. */
type Named<Whole extends { readonly id: unknown }> = Omit<Whole, 'id'> & { readonly id: Id };

/** The contract's resources as an administrator gets them, in the contract's names. */
export type NetworkSummary = WithGaps<Named<NetworkSummaryReply>, 'revision'>;
export type NetworkPeer = WithGaps<Omit<ListedPeer, 'id' | 'profile'>, 'created_at'> & {
  readonly id: PeerId;
  readonly profile?: ConnectorProfile;
  /** Of a peer that waits for approval: of its identity key, or of its public key without one. */
  readonly fingerprint?: string;
};
export type Network = NetworkSummary & {
  readonly peers: NetworkPeer[];
  /** The connector through which hosts without an endpoint reach each other. Absent without one. */
  readonly relay?: PeerId;
  /** List entries that are no peers, and why; absent if all are. */
  readonly skipped_peers?: { readonly id: PeerId | null; readonly name: string | null; readonly reason: string }[];
};
export type NewKey = WithGaps<Named<NewEnrollmentKey>, 'id' | 'expires_at'>;
export type Key = WithGaps<Named<EnrollmentKey>, 'max_uses' | 'uses' | 'expires_at'>;
export type Session = { readonly token: Secret; readonly expiresAt: string | null };
/** The user of a token, as far as stated. Any reply proves that the token is valid. */
export interface Profile {
  readonly email: string | null;
  readonly role: string | null;
  /** The networks to which the user or its token is limited. Absent without a limit. */
  readonly networks?: readonly Id[];
  readonly organization: { readonly id: Id | null; readonly name: string | null } | null;
}

const maxNetworks = 10_000;
const maxKeys = 100_000;
/** The routes of a connector in a profile. */
const maxRoutes = 256;

/** Requires the token, as a bearer. */
export function decodeSession(body: unknown, source: Source): Session {
  const session = Field.ofReply(body, source);
  const type = session.find(aliases.session.type);
  if (type && type.text(20).toLowerCase() !== 'bearer') throw type.wrong('is not Bearer');
  return {
    token: decodeToken(session.need(aliases.session.token)),
    expiresAt: session.tryFind(aliases.session.expiresAt, (at) => at.instant()),
  };
}

export function decodeProfile(body: unknown, source: Source): Profile {
  const reply = Field.ofReply(body, source);
  const profile = reply.tryFind(aliases.profile.user, (user) => user) ?? reply;
  const organization = profile.tryFind(aliases.profile.organization, (field) => field);
  const networks = profile.tryFind(aliases.profile.networks, (limit) => limit.items(maxNetworks).map(decodeId));
  return {
    email: profile.tryFind(aliases.profile.email, (email) => email.text(320)),
    role: profile.tryFind(aliases.profile.role, (role) => role.text(100)),
    ...(networks && { networks }),
    organization: organization && {
      id: organization.tryFind(aliases.profile.id, decodeId),
      name: organization.tryFind(aliases.profile.name, (name) => name.text(1000)),
    },
  };
}

export function decodeNetworks(body: unknown, source: Source): NetworkSummary[] {
  return Field.ofReply(body, source).as('networks').items(maxNetworks).map(decodeSummary);
}

/** A network, with its peers checked as in a host's map; none for a new network. */
export function decodeWholeNetwork(body: unknown, source: Source): Network {
  const network = Field.ofReply(body, source).as('network');
  const summary = decodeSummary(network);
  const list = network.find(aliases.network.peers);
  if (!list) return { ...summary, peers: [] };
  const { cidr, relay } = decodeNetwork(network);
  const { peers, fields, skipped } = decodePeers(list, cidr);
  return {
    ...summary,
    ...(relay !== undefined && { relay }),
    peers: peers.map((peer, index) => present(peer, fields[index] ?? null)),
    ...(skipped.length > 0 && { skipped_peers: skipped.map(({ id, name, reason }) => ({ id, name, reason })) }),
  };
}

export function decodeChangedPeer(body: unknown, source: Source): NetworkPeer {
  const peer = Field.ofReply(body, source).as('peer');
  return present(decodePeer(peer), peer);
}

/** Peers of a list, also those that the network's map lacks. */
export function decodeListedPeers(body: unknown, source: Source): NetworkPeer[] {
  const peers = Field.ofReply(body, source).as('peers').items(maxPeers);
  return peers.map((peer) => present(decodePeer(peer), peer));
}

/** Requires ids, because a key is revoked by its id. */
export function decodeKeys(body: unknown, source: Source): Key[] {
  const keys = Field.ofReply(body, source).as('keys').items(maxKeys);
  return keys.map((key) => ({
    id: decodeId(key.need(aliases.key.id)),
    name: key.need(aliases.key.name).text(120),
    max_uses: key.find(aliases.key.maxUses)?.integer() ?? null,
    uses: key.find(aliases.key.uses)?.integer() ?? null,
    expires_at: key.find(aliases.key.expiresAt)?.instant() ?? null,
    ...decodeLimits(key),
  }));
}

/**
 * A key's limits; empty for none. An unreadable limit is ignored: the service shows a key once, and
 * another field must not lose it.
 */
function decodeLimits(key: Field): Pick<Key, 'peer_types' | 'routes' | 'tags' | 'peer_expires_in_hours'> {
  const types = z.array(PeerType).safeParse(key.find(aliases.key.peerTypes)?.value);
  const routes = z.array(z.cidrv4()).safeParse(key.find(aliases.key.routes)?.value);
  const tags = z.array(z.string().regex(tagPattern)).safeParse(key.find(aliases.key.tags)?.value);
  const hours = z.int().min(1).safeParse(key.find(aliases.key.peerHours)?.value);
  return {
    ...(types.success && { peer_types: types.data }),
    ...(routes.success && { routes: routes.data }),
    ...(tags.success && { tags: tags.data }),
    ...(hours.success && { peer_expires_in_hours: hours.data }),
  };
}

/** Requires only the token, which the service shows once. Limits default to the request's. */
export function decodeNewKey(body: unknown, source: Source, asked: CreateEnrollmentKey): NewKey {
  const key = Field.ofReply(body, source);
  return {
    id: key.tryFind(aliases.key.id, decodeId),
    name: key.find(aliases.key.name)?.text(120) ?? asked.name,
    enrollment_token: decodeToken(key.need(aliases.key.token)).reveal(),
    max_uses: key.find(aliases.key.maxUses)?.integer() ?? asked.max_uses,
    uses: key.find(aliases.key.uses)?.integer() ?? 0,
    expires_at: key.find(aliases.key.expiresAt)?.instant() ?? null,
    ...decodeLimits(key),
  };
}

function present(peer: Peer, field: Field | null): NetworkPeer {
  const profile = field && findConnectorProfile(field);
  const suspended = field?.find(aliases.peer.suspendedAt)?.instant() ?? null;
  const user = ListedPeer.shape.user.safeParse(field?.find(aliases.peer.user)?.value).data;
  return {
    id: peer.id,
    name: peer.name,
    peer_type: peer.type,
    public_key: peer.publicKey,
    address: peer.address,
    endpoint: peer.endpoint && formatEndpoint(peer.endpoint),
    ...(peer.routes ? { routes: [...peer.routes] } : {}),
    ...(peer.withdrawn.length > 0 ? { withdrawn: [...peer.withdrawn] } : {}),
    ...showFields(peer),
    ...(suspended !== null && { suspended_at: suspended }),
    ...(peer.awaitingApproval !== undefined && { fingerprint: fingerprintOf(peer.identity ?? peer.publicKey) }),
    ...(profile && { profile }),
    ...(user && { user }),
    created_at: field?.find(aliases.peer.createdAt)?.instant() ?? null,
  };
}

/** The profile of a peer that dials one connector; null if absent or malformed. */
function findConnectorProfile(peer: Field): ConnectorProfile | null {
  if (peer.find([peerFields.via.name])?.value !== 'connectors') return null;
  return peer.tryFind(aliases.peer.profile, decodeConnectorProfile);
}

function decodeConnectorProfile(profile: Field): ConnectorProfile {
  const decodeRoutes = (routes: Field) =>
    routes.items(maxRoutes).map((route) => route.parse((text) => parseRange(text)));
  return {
    connector: decodeId(profile.need(aliases.peer.connector)),
    public_key: profile.need(aliases.peer.publicKey).parse((text) => parsePeerKey(text)),
    endpoint: formatEndpoint(profile.need(aliases.peer.endpoint).parse((text) => parseEndpoint(text))),
    routes: decodeRoutes(profile.need(aliases.peer.routes)),
    declined: decodeRoutes(profile.need(aliases.peer.declined)),
  };
}

/** Leaves out keys and proofs, which only hosts need. */
function showFields(peer: Peer): Partial<NetworkPeer> {
  const shown: Record<string, unknown> = {};
  for (const [name, { name: contractName, kind }] of listedPeerFields) {
    const value = peer[name];
    if (value === undefined || kind === 'identityKey' || kind === 'keyProof') continue;
    shown[contractName] =
      kind === 'via' ? 'connectors' : kind === 'instant' ? new Date(value as number).toISOString() : value;
  }
  return shown;
}

function decodeSummary(network: Field): NetworkSummary {
  const { id, name, cidr, routes, maxAge, spread } = decodeNetwork(network);
  // Ignores other values: another service may use the word differently.
  const selfEnroll = SelfEnroll.safeParse(network.find(aliases.network.selfEnroll)?.value);
  const approval = Approval.safeParse(network.find(aliases.network.approval)?.value);
  const routeDns = z.array(RouteDns).safeParse(network.find(aliases.network.routeDns)?.value);
  return {
    id,
    name,
    description: network.find(aliases.network.description)?.text(1000) ?? '',
    private_cidr: cidr,
    routes: [...routes],
    vpn_type: 'wireguard',
    revision: network.find(aliases.network.revision)?.integer() ?? null,
    ...(maxAge !== undefined && { map_max_age_seconds: maxAge }),
    ...(spread && { spread }),
    ...(approval.success && approval.data !== 'off' && { approval: approval.data }),
    ...(routeDns.success && routeDns.data.length > 0 && { route_dns: routeDns.data }),
    ...(selfEnroll.success && { self_enroll: selfEnroll.data }),
  };
}
