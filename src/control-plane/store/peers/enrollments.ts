import type { Selectable } from 'kysely';
import type { Db, Tables } from '../tables.ts';

export type StoredEnrollment = Selectable<Tables['enrollments']>;

/** An enrolment is a replay of another if all three fields are the same. */
export type EnrollmentIdentity = Pick<StoredEnrollment, 'enrollment_key_id' | 'public_key' | 'idempotency_hash'>;

export async function findEnrollment(db: Db, identity: EnrollmentIdentity): Promise<StoredEnrollment | undefined> {
  return db
    .selectFrom('enrollments')
    .selectAll()
    .where('enrollment_key_id', '=', identity.enrollment_key_id)
    .where('public_key', '=', identity.public_key)
    .where('idempotency_hash', '=', identity.idempotency_hash)
    .executeTakeFirst();
}

export interface NamedKey {
  readonly id: number;
  readonly name: string;
}

/** Returns the key of a peer's latest enrolment, while a replay of it would be recognised. */
export async function findKeyOfEnrollment(db: Db, peer: number): Promise<NamedKey | undefined> {
  return db
    .selectFrom('enrollments')
    .innerJoin('enrollment_keys as keys', 'keys.id', 'enrollments.enrollment_key_id')
    .select(['keys.id', 'keys.name'])
    .where('enrollments.peer_id', '=', peer)
    .executeTakeFirst();
}

/** Deletes the enrolment of a peer, so that a replay of it gets no answer. */
export async function deleteEnrollment(db: Db, peerId: number): Promise<void> {
  await db.deleteFrom('enrollments').where('peer_id', '=', peerId).execute();
}

export async function insertEnrollment(db: Db, enrollment: StoredEnrollment): Promise<void> {
  await db.insertInto('enrollments').values(enrollment).execute();
}

/** Records the identity of a removed peer, so that no other host can take it over. */
export async function insertFormerIdentity(db: Db, networkId: number, identity: string, now: string): Promise<void> {
  await db
    .insertInto('former_identities')
    .values({ network_id: networkId, identity_key: identity, removed_at: now })
    .onConflict((conflict) => conflict.columns(['network_id', 'identity_key']).doUpdateSet({ removed_at: now }))
    .execute();
}

export async function wasIdentityRemoved(db: Db, networkId: number, identity: string): Promise<boolean> {
  const row = await db
    .selectFrom('former_identities')
    .select('id')
    .where('network_id', '=', networkId)
    .where('identity_key', '=', identity)
    .executeTakeFirst();
  return row !== undefined;
}

export async function deleteFormerIdentities(db: Db, before: string): Promise<void> {
  await db.deleteFrom('former_identities').where('removed_at', '<', before).execute();
}
