import type { Selectable } from 'kysely';
import type { Db, Tables } from './tables.ts';

export type StoredEnrollment = Selectable<Tables['enrollments']>;

/** What makes one enrolment the replay of another: all three are the same. */
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

/** Forgets the enrolment of a peer, so that no repetition of it is answered. */
export async function deleteEnrollment(db: Db, peerId: number): Promise<void> {
  await db.deleteFrom('enrollments').where('peer_id', '=', peerId).execute();
}

export async function insertEnrollment(db: Db, enrollment: StoredEnrollment): Promise<void> {
  await db.insertInto('enrollments').values(enrollment).execute();
}
