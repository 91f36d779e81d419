import * as z from 'zod';
import type { CreateEnrollmentKey } from '../contract/enrollment-key.ts';
import { PeerType } from '../contract/peer.ts';
import { formatEndpoint } from '../core/endpoint.ts';
import type { Peer } from '../core/model.ts';
import { aliases, type Names } from './aliases.ts';
import { decodeToken } from './decode.ts';
import { decodeId } from './decode-id.ts';
import { decodeNetwork, decodePeer, decodePeers } from './decode-network.ts';
import { Field, type Source } from './field.ts';
import type { Key, Network, NetworkPeer, NetworkSummary, NewKey, Profile, Session } from './service.ts';

const maxNetworks = 10_000;
const maxKeys = 100_000;

/** What a login gives: the token must be there, and be a bearer. */
export function decodeSession(body: unknown, source: Source): Session {
  const session = Field.ofReply(body, source);
  const type = session.find(aliases.session.type);
  if (type && type.text(20).toLowerCase() !== 'bearer') throw type.wrong('is not Bearer');
  return {
    token: decodeToken(session.need(aliases.session.token)),
    expiresAt: tryField(session, aliases.session.expiresAt, (at) => at.instant()),
  };
}

/** Who a token stands for, as far as a reply says it. */
export function decodeProfile(body: unknown, source: Source): Profile {
  const reply = Field.ofReply(body, source);
  const profile = tryField(reply, aliases.profile.user, (user) => user) ?? reply;
  const organization = tryField(profile, aliases.profile.organization, (field) => field);
  return {
    email: tryField(profile, aliases.profile.email, (email) => email.text(320)),
    role: tryField(profile, aliases.profile.role, (role) => role.text(100)),
    organization: organization && {
      id: tryField(organization, aliases.profile.id, decodeId),
      name: tryField(organization, aliases.profile.name, (name) => name.text(1000)),
    },
  };
}

/** What a service need not tell: null where it tells nothing, or means something else by it. */
function tryField<T>(field: Field, names: Names, decode: (found: Field) => T): T | null {
  return field.attempt<T | null>(
    (at) => {
      const found = at.find(names);
      return found && decode(found);
    },
    () => null,
  );
}

export function decodeNetworks(body: unknown, source: Source): NetworkSummary[] {
  return Field.ofReply(body, source).as('networks').items(maxNetworks).map(decodeSummary);
}

/** A network with its peers, under the same checks as a host's map; one that lists no peers, as just made, has none. */
export function decodeWholeNetwork(body: unknown, source: Source): Network {
  const network = Field.ofReply(body, source).as('network');
  const summary = decodeSummary(network);
  const list = network.find(aliases.network.peers);
  if (!list) return { ...summary, peers: [] };
  const { peers, fields, skipped } = decodePeers(list, decodeNetwork(network).cidr);
  return {
    ...summary,
    peers: peers.map((peer, index) => present(peer, fields[index]?.find(aliases.peer.createdAt) ?? null)),
    ...(skipped.length > 0 && { skipped_peers: skipped.map(({ id, name, reason }) => ({ id, name, reason })) }),
  };
}

/** A peer as it is after a change. */
export function decodeChangedPeer(body: unknown, source: Source): NetworkPeer {
  const peer = Field.ofReply(body, source).as('peer');
  return present(decodePeer(peer), peer.find(aliases.peer.createdAt));
}

/** The keys of a network; their ids must be there, for a key is revoked by its id. */
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
 * What enrolments with a key are limited to; nothing where the service tells of no limit. What cannot be read is passed over: a key is
 * shown once, and must not be lost for a field beside it.
 */
function decodeLimits(key: Field): Pick<Key, 'peer_types' | 'routes'> {
  const types = z.array(PeerType).safeParse(key.find(aliases.key.peerTypes)?.value);
  const routes = z.array(z.cidrv4()).safeParse(key.find(aliases.key.routes)?.value);
  return { ...(types.success && { peer_types: types.data }), ...(routes.success && { routes: routes.data }) };
}

/** A key just made. Only the token must be there, for it is shown this once; the limits are those asked for unless told. */
export function decodeNewKey(body: unknown, source: Source, asked: CreateEnrollmentKey): NewKey {
  const key = Field.ofReply(body, source);
  return {
    id: tryField(key, aliases.key.id, decodeId),
    name: key.find(aliases.key.name)?.text(120) ?? asked.name,
    enrollment_token: decodeToken(key.need(aliases.key.token)).reveal(),
    max_uses: key.find(aliases.key.maxUses)?.integer() ?? asked.max_uses,
    uses: key.find(aliases.key.uses)?.integer() ?? 0,
    expires_at: key.find(aliases.key.expiresAt)?.instant() ?? null,
    ...decodeLimits(key),
  };
}

function present(peer: Peer, created: Field | null): NetworkPeer {
  return {
    id: peer.id,
    name: peer.name,
    peer_type: peer.type,
    public_key: peer.publicKey,
    address: peer.address,
    endpoint: peer.endpoint && formatEndpoint(peer.endpoint),
    ...(peer.routes ? { routes: [...peer.routes] } : {}),
    ...(peer.withdrawn.length > 0 ? { withdrawn: [...peer.withdrawn] } : {}),
    ...(peer.servingSince === undefined ? {} : { serving_since: new Date(peer.servingSince).toISOString() }),
    ...(peer.priority === undefined ? {} : { priority: peer.priority }),
    created_at: created?.instant() ?? null,
  };
}

function decodeSummary(network: Field): NetworkSummary {
  const { id, name, cidr, routes } = decodeNetwork(network);
  return {
    id,
    name,
    description: network.find(aliases.network.description)?.text(1000) ?? '',
    private_cidr: cidr,
    routes: [...routes],
    vpn_type: 'wireguard',
    revision: network.find(aliases.network.revision)?.integer() ?? null,
  };
}
