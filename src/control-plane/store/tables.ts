import type { Generated, Kysely } from 'kysely';
import type { AuditEntry } from '../../contract/audit.ts';
import type { Role } from '../../contract/auth.ts';
import type { EventType } from '../../contract/event.ts';
import type { PeerMessageKind } from '../../contract/network.ts';
import type { PeerType } from '../../contract/peer.ts';
import type { DeletionOutcome } from '../../contract/removal.ts';
import type { RulesMode } from '../../contract/rules.ts';
import type { FactorKind } from '../../contract/second-factor.ts';
import type { FieldColumns } from './peer-columns.ts';

/** The database, or a transaction in it. Queries use only SQL that SQLite and PostgreSQL share. */
export type Db = Kysely<Tables>;

/** Instants are ISO 8601 in UTC with milliseconds, comparable as text. Lists are JSON in text. */
export interface Tables {
  organizations: { id: Generated<number>; name: string };
  users: {
    id: Generated<number>;
    organization_id: number;
    email: string;
    /** Empty without a password. */
    password_hash: string;
    role: Role;
    created_at: string;
    /** When `control-plane reset-owner` set the password; null if it did not. */
    reset_at: Generated<string | null>;
    /** The ids of the networks to which the user is limited, in JSON; null for all. */
    networks: Generated<string | null>;
  };
  sessions: {
    id: Generated<number>;
    user_id: number;
    name: string;
    token_hash: string;
    created_at: string;
    expires_at: string;
    /** The source address of the login; null for sessions that predate this column. */
    address: string | null;
    /** A use at most some minutes before the last one; null before the first that is stored. */
    last_used_at: string | null;
    /** When the user proved its identity; null if at the login itself. */
    proven_at: string | null;
  };
  /** Logins that wait for an approval in the console. */
  device_codes: {
    id: Generated<number>;
    device_code_hash: string;
    user_code_hash: string;
    name: string;
    /** The source address of the request, and its part by which requests are limited. */
    address: string;
    origin: string;
    /** The S256 challenge and the loopback port of a browser on the same machine, else null. */
    code_challenge: string | null;
    redirect_port: number | null;
    created_at: string;
    expires_at: string;
    /** Null until a user decides. The fields after it are those of an approval. */
    outcome: 'approved' | 'refused' | null;
    user_id: number | null;
    /** The session of the approval, which must still be valid when the code is used. */
    session_id: number | null;
    /** When that user proved its identity. */
    proven_at: string | null;
    /** The hash of the code that the console brings to the port. */
    redirect_code_hash: string | null;
  };
  personal_tokens: {
    id: Generated<number>;
    user_id: number;
    name: string;
    token_hash: string;
    created_at: string;
    expires_at: string | null;
    last_used_at: string | null;
    /** The ids of its networks, in JSON; null for all those of its user. */
    networks: Generated<string | null>;
  };
  second_factors: {
    id: Generated<number>;
    user_id: number;
    kind: FactorKind;
    name: string;
    /** A FactorData in JSON. */
    data: string;
    created_at: string;
    last_used_at: string | null;
  };
  /** The unused recovery codes. */
  recovery_codes: { user_id: number; code_hash: string };
  /** Logins after the password, and factors that are being added. */
  factor_challenges: {
    id: Generated<number>;
    user_id: number;
    /** The session that adds a factor; null for a login. */
    session_id: number | null;
    token_hash: string;
    /** A ChallengeData in JSON. */
    data: string;
    /** Failed attempts. */
    tries: number;
    expires_at: string;
  };
  /** The prefixes of addresses from which users logged in. */
  known_prefixes: { user_id: number; prefix: string; last_used_at: string };
  /** The users of issuers of OpenID Connect. */
  identities: {
    user_id: number;
    issuer: string;
    subject: string;
    last_login_at: string | null;
    /** The last login, or the last time that the issuer confirmed one. */
    confirmed_at: string | null;
  };
  /** Sessions that an issuer confirmed, and may end. */
  issuer_sessions: {
    session_id: number;
    /** The id of the session at the issuer. */
    issuer_session: string | null;
    /** Encrypted. */
    refresh_token: string | null;
    /** When the issuer is asked again. During a request: when another process may ask. */
    next_at: string;
  };
  /** Logins at an issuer that did not end yet. */
  login_attempts: {
    id: Generated<number>;
    state_hash: string;
    /** The hash of the value in the browser's cookie. */
    browser_hash: string;
    nonce: string;
    verifier: string;
    redirect_uri: string;
    address: string;
    created_at: string;
    /** Set when the browser comes back: the user and its subject, or why there is none. */
    user_id: number | null;
    subject: string | null;
    refusal: string | null;
    issuer_session: string | null;
    refresh_token: string | null;
  };
  networks: {
    id: Generated<number>;
    organization_id: number;
    name: string;
    description: string;
    private_cidr: string;
    routes: string;
    revision: number;
    /** A random value for each revision: after a restore, the same number is another revision. */
    nonce: string;
    /** The number of addresses that were assigned for the first time. */
    addresses_given: number;
    created_at: string;
    /** Null for no limit. */
    map_max_age_seconds: number | null;
    /** Stays with the network. Null in a network of an earlier version until its next revision. */
    lasting_nonce: string | null;
    /** The id of the connector through which hosts without an endpoint reach each other. */
    relay: number | null;
    /** 1 if hosts spread over equal connectors, else 0. */
    spread: Generated<number>;
    /** The entries of the contract's RouteDns. */
    route_dns: Generated<string>;
    /** Who may enrol own devices, in JSON; null for no user. */
    self_enroll: string | null;
    /** 1 if an administrator approves new peers, else 0. */
    approval: Generated<number>;
  };
  /** The rules of a network. A network whose rules were never set has no row, and is open. */
  network_rules: {
    network_id: number;
    mode: RulesMode;
    /** In JSON, like the tests. Selectors name peers by id, which no later peer gets. */
    rules: string;
    tests: string;
    /** 1 if peers whose hosts do not enforce rules are no destinations, else 0. */
    require_enforcement: number;
    /** The number of the last change, and a random value for it. */
    serial: number;
    nonce: string;
    /** The revision of the network in which its map got the rules. */
    revision: number;
    /** The last names of removed peers that selectors name, by id, in JSON. */
    gone: string;
    /** When the earlier rules return; null if the rules are confirmed. */
    confirm_until: string | null;
    /** The last confirmed rules in JSON; null if the current ones are. */
    earlier: string | null;
    /** When the service restored them; null since the next change. */
    restored_at: string | null;
  };
  /** Deleted networks. Their hosts receive a statement of it with the id and this nonce. */
  deleted_networks: { network_id: number; organization_id: number; name: string; nonce: string; deleted_at: string };
  deleted_peers: {
    id: Generated<number>;
    network_id: number;
    peer_id: number;
    name: string;
    token_hash: string;
    /** The last version of the host; null for a peer that never made a request. */
    version: string | null;
    last_seen: string | null;
    /** What its last request showed; null if it made none since the deletion. */
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
    /** The peer types that may enrol with it, in JSON; null for any. */
    peer_types: string | null;
    /** The routes that a connector may serve, in JSON; null for any. */
    routes: string | null;
    /** How long a peer that enrols with it may stay in the network; null for no limit. */
    peer_hours: number | null;
    /** The tags of its peers, in JSON; null for none. */
    tags: string | null;
    /** The user whose device enrols with it; null for a key of the network. Outlives the user. */
    user_id: number | null;
  };
  peers: FieldColumns & {
    id: Generated<number>;
    network_id: number;
    name: string;
    /** The name as a DNS label, unique within the network; null if no character is valid. */
    label: string | null;
    peer_type: PeerType;
    public_key: string;
    /** The public key before its last change, to which the peer may return; null if none. */
    previous_key: string | null;
    address: string;
    endpoint: string | null;
    routes: string | null;
    /** The routes that the connector took out of service. Overrides `routes`. */
    withdrawn: Generated<string>;
    /** 1 after its expiry took it out of the map, else 0. */
    expired: Generated<number>;
    /** The user whose device it is; null for other peers, and after the user's removal. */
    user_id: number | null;
    /** The e-mail address of that user, also after its removal. */
    user_email: string | null;
    token_hash: string;
    created_at: string;
  };
  /** Labels that peers had before. No other peer of the network gets one of them. */
  former_labels: { id: Generated<number>; network_id: number; peer_id: number; label: string };
  /** The peer that a revision changed; null for the network. Only recent revisions are kept. */
  changes: { network_id: number; revision: number; peer_id: number | null; nonce: string | null };
  /** Recognises replays. Deleted with the peer, so that a replay cannot bring the peer back. */
  enrollments: {
    peer_id: number;
    enrollment_key_id: number;
    public_key: string;
    idempotency_hash: string;
    token_salt: string;
  };
  /** The identities of removed peers. A new peer gets one of them only with a proof. */
  former_identities: { id: Generated<number>; network_id: number; identity_key: string; removed_at: string };
  /** The audit log. It outlives its users and peers, so it has their names and no references. */
  audit_entries: {
    id: Generated<number>;
    /** Null if unknown, as for a login with an unknown e-mail address. */
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
    /** The place in the chain of the organization; null until the entry is chained. */
    chain_seq: number | null;
    chain_hash: string | null;
  };
  /** The last link of each organization's audit. */
  audit_chains: { organization_id: number; seq: number; hash: string };
  /** Links whose entries retention removed. */
  audit_pruned: { organization_id: number; seq: number; digest: string; hash: string };
  /** The processes that send the audit to receivers, one at a time for each. */
  audit_receivers: { name: string; holder: string; held_until: string };
  /** The last link that a receiver has. */
  audit_positions: { receiver: string; organization_id: number; seq: number };
  /** The revision of a network's health and events. A network without either has no row. */
  network_health: {
    network_id: number;
    revision: number;
    nonce: string;
    /** The state of the routes in the last events, in JSON. */
    routes: string;
  };
  peer_health: {
    peer_id: number;
    network_id: number;
    /** The last request. This field and the three after it are null if none is kept. */
    last_seen: string | null;
    version: string | null;
    platform: string | null;
    address: string | null;
    /** The state in the last event; null before the first. */
    announced: 'online' | 'offline' | null;
    /** The JSON of the merged reports; null before the first. */
    report: string | null;
    reported_at: string | null;
    /** The first revision, or a later one, applied since a peer left the map; null if unknown. */
    acknowledged_revision: number | null;
    /** The JSON of the starts of its daemon; null if none is known. */
    instances: string | null;
    /** When its last connection was lost. A later request makes it void. */
    lost_at: string | null;
    /** 1 if its last report states that it uses the relay of the network, else 0. */
    follows_relay: Generated<number>;
    /** 1 if its last report states that it enforces rules, else 0. */
    enforces_rules: Generated<number>;
  };
  /** The traffic that a peer received and sent in the last 24 hours. */
  peer_traffic: { peer_id: number; history: string; updated_at: string };
  peer_messages: {
    id: Generated<number>;
    network_id: number;
    peer_id: number;
    kind: PeerMessageKind;
    data: string;
    created_at: string;
  };
  /**
   * What is stated about the endpoints of peers for direct paths, one row for each source. The
   * source is a connector that observes the peer, or the peer itself.
   */
  peer_endpoints: {
    peer_id: number;
    source: number;
    network_id: number;
    /** Of a connector: the endpoint in its WireGuard table, and 1 if it stood, else 0. */
    endpoint: string | null;
    stood: Generated<number>;
    /** Of the peer itself: its own endpoints in JSON, and the source address of its request. */
    own: string | null;
    address: string | null;
    at: string;
  };
  /** Pairs of peers that try for a direct path, or have one. `a` is the lower id. */
  peer_pairs: {
    a: number;
    b: number;
    network_id: number;
    state: 'gathering' | 'trying' | 'direct' | 'resting';
    /** The number of the last attempt. */
    attempt: number;
    /** Attempts since the last reset of the backoff. */
    tries: number;
    data: string;
    /** When the last attempt began, when the state began, and when the next attempt may begin. */
    started_at: string;
    at: string;
    next_at: string;
  };
  /** How many endpoints at an address were given out to be tried. */
  path_starts: { id: Generated<number>; network_id: number; address: string; starts: number; at: string };
  /** The events of a network. They outlive their peers, so they store the names. */
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
    body: string;
    created_at: string;
    attempts: number;
    /** When the next attempt is due. During an attempt: when another process may begin one. */
    next_at: string;
  };
  /** One row, written to check whether the database is writable. */
  write_checks: { id: Generated<number>; at: string };
}
