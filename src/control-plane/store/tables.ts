import type { Generated, Kysely } from 'kysely';
import type { AuditEntry } from '../../contract/audit.ts';
import type { Role } from '../../contract/auth.ts';
import type { EventType } from '../../contract/event.ts';
import type { PeerMessageKind } from '../../contract/message.ts';
import type { PeerType } from '../../contract/peer.ts';
import type { DeletionOutcome } from '../../contract/removal.ts';

/** The database, or a transaction in it. All SQL goes through it, in the part that SQLite and PostgreSQL share. */
export type Db = Kysely<Tables>;

/** Instants are ISO 8601 in UTC to the millisecond, so that they compare as text; lists are JSON in text. */
export interface Tables {
  organizations: { id: Generated<number>; name: string };
  users: {
    id: Generated<number>;
    organization_id: number;
    email: string;
    password_hash: string;
    role: Role;
    created_at: string;
  };
  sessions: {
    id: Generated<number>;
    user_id: number;
    name: string;
    token_hash: string;
    created_at: string;
    expires_at: string;
    /** Where the login came from; null for sessions from before this was kept. */
    address: string | null;
  };
  personal_tokens: {
    id: Generated<number>;
    user_id: number;
    name: string;
    token_hash: string;
    created_at: string;
    expires_at: string | null;
    last_used_at: string | null;
  };
  networks: {
    id: Generated<number>;
    organization_id: number;
    name: string;
    description: string;
    private_cidr: string;
    routes: string;
    revision: number;
    /** A new random value for each revision: after a restore the same number is another revision. */
    nonce: string;
    /** How many addresses were given out for the first time. */
    addresses_given: number;
    created_at: string;
    /** Null for no bound. */
    map_max_age_seconds: number | null;
    /** A random value that stays with the network; null in one that an earlier version made, until its next revision. */
    lasting_nonce: string | null;
  };
  /** Networks that were deleted: their hosts receive a statement of it, with the id and the nonce that they know. */
  deleted_networks: { network_id: number; organization_id: number; name: string; nonce: string; deleted_at: string };
  /** The peers of deleted networks, by their tokens. */
  deleted_peers: {
    id: Generated<number>;
    network_id: number;
    peer_id: number;
    name: string;
    token_hash: string;
    /** The last version of the host; null for a peer that never made a request. */
    version: string | null;
    last_seen: string | null;
    /** What its last request showed; null where it made none since the deletion. */
    outcome: DeletionOutcome | null;
  };
  /** Released addresses that are still free, in the order of their release. */
  returned_addresses: { id: Generated<number>; network_id: number; address: string };
  enrollment_keys: {
    id: Generated<number>;
    network_id: number;
    name: string;
    token_hash: string;
    max_uses: number;
    uses: number;
    created_at: string;
    expires_at: string;
    revoked_at: string | null;
    /** The types that a peer may enrol with, in JSON; null for any. */
    peer_types: string | null;
    /** The routes that a connector may serve, in JSON; null for any. */
    routes: string | null;
    /** How long a peer that enrols with it may be in the network; null for any time. */
    peer_hours: number | null;
  };
  peers: {
    id: Generated<number>;
    network_id: number;
    name: string;
    /** The name as a DNS label, unique within the network; null where nothing of the name is left then. */
    label: string | null;
    peer_type: PeerType;
    public_key: string;
    /** The public key before its last change, to which the peer may go back; null where it never changed. */
    previous_key: string | null;
    address: string;
    endpoint: string | null;
    routes: string | null;
    /** What the connector took out of service, whatever `routes` says. */
    withdrawn: Generated<string>;
    identity_key: string | null;
    /** The JSON of its proof. */
    key_proof: string | null;
    network_secret_tag: string | null;
    /** The JSON of the profile of a peer that is reached through connectors alone; null for any other. */
    profile: string | null;
    /** When a connector began to serve; null for other peers. */
    serving_since: string | null;
    priority: Generated<number>;
    /** When an admin took it out of the map; null where it is in, or has expired only. */
    suspended_at: string | null;
    expires_at: string | null;
    /** 1 once it was taken out of the map because it expired, else 0. */
    expired: Generated<number>;
    token_hash: string;
    created_at: string;
  };
  /** Which peer a revision is about, or null for the network itself; of each network only the last revisions are kept. */
  changes: { network_id: number; revision: number; peer_id: number | null; nonce: string | null };
  /** What a replay of an enrolment is recognised by. It goes with its peer: a removed peer does not come back by a replay. */
  enrollments: {
    peer_id: number;
    enrollment_key_id: number;
    public_key: string;
    idempotency_hash: string;
    token_salt: string;
  };
  /** The identities of peers that were removed: without a proof no new peer is known by one of them. */
  former_identities: { id: Generated<number>; network_id: number; identity_key: string; removed_at: string };
  /** The audit log. It outlives the users and peers in it, so it has their names and no references. */
  audit_entries: {
    id: Generated<number>;
    /** Null where it is unknown, as for a login with an unknown e-mail address. */
    organization_id: number | null;
    at: string;
    actor_kind: AuditEntry['actor']['kind'];
    actor_id: number | null;
    actor_name: string | null;
    action: string;
    target_kind: AuditEntry['target']['kind'];
    target_id: number | null;
    target_name: string | null;
    address: string | null;
    details: string;
  };
  /** The revision of a network's health and events: of each network without either there is no row. */
  network_health: {
    network_id: number;
    revision: number;
    nonce: string;
    /** What the last events stated of the routes, in JSON. */
    routes: string;
  };
  /** Presence and the last report of a peer. */
  peer_health: {
    peer_id: number;
    network_id: number;
    /** The last request, like the three after it null where none is kept. */
    last_seen: string | null;
    version: string | null;
    platform: string | null;
    address: string | null;
    /** What the last event stated; null before the first. */
    announced: 'online' | 'offline' | null;
    /** The JSON of the merged reports; null before the first. */
    report: string | null;
    reported_at: string | null;
    /** The first revision that it applied since a peer left the map, or a later one; null where none is known. */
    acknowledged_revision: number | null;
    /** The JSON of the starts of its daemon; null where none is known. */
    instances: string | null;
    /** When its last connection was lost; it counts until a later request. */
    lost_at: string | null;
  };
  /** What a peer received and sent in the last 24 hours. */
  peer_traffic: { peer_id: number; history: string; updated_at: string };
  /** Messages that hosts have not received yet. */
  peer_messages: {
    id: Generated<number>;
    network_id: number;
    peer_id: number;
    kind: PeerMessageKind;
    /** In JSON. */
    data: string;
    created_at: string;
  };
  /** What happened in a network. It outlives the peers in it, and so it has their names. */
  events: {
    id: Generated<number>;
    network_id: number;
    at: string;
    type: EventType;
    peer_id: number | null;
    peer_name: string | null;
    route: string | null;
    details: string;
  };
  /** The events that the webhook has not received yet. */
  deliveries: {
    id: Generated<number>;
    event_id: number;
    /** The JSON of the event. */
    body: string;
    created_at: string;
    attempts: number;
    /** When the next attempt is due. While one is running, when another process may begin one. */
    next_at: string;
  };
  /** One row, that is written to see whether the database can be written. */
  write_checks: { id: Generated<number>; at: string };
}
