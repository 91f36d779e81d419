import type { Generated, Kysely } from 'kysely';
import type { Role } from '../../contract/auth.ts';
import type { PeerType } from '../../contract/peer.ts';

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
  };
  networks: {
    id: Generated<number>;
    organization_id: number;
    name: string;
    description: string;
    private_cidr: string;
    routes: string;
    revision: number;
    /** How many addresses were given out for the first time. */
    addresses_given: number;
    created_at: string;
  };
  /** Addresses that came back, in that order, and that nobody holds again yet. */
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
  };
  peers: {
    id: Generated<number>;
    network_id: number;
    name: string;
    peer_type: PeerType;
    public_key: string;
    address: string;
    endpoint: string | null;
    routes: string | null;
    token_hash: string;
    created_at: string;
  };
  /** What a replay of an enrolment is recognised by. It goes with its peer: a removed peer does not come back by a replay. */
  enrollments: {
    peer_id: number;
    enrollment_key_id: number;
    public_key: string;
    idempotency_hash: string;
    token_salt: string;
  };
}
