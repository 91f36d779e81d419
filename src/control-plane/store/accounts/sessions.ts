import type { Insertable, Selectable } from 'kysely';
import type { UserCaller } from '../../domain/caller.ts';
import type { Db, Tables } from '../tables.ts';

type Identified = Omit<UserCaller, 'address' | 'access'>;

export async function insertSession(db: Db, session: Insertable<Tables['sessions']>): Promise<number> {
  const { id } = await db.insertInto('sessions').values(session).returning('id').executeTakeFirstOrThrow();
  return id;
}

export async function findSessionCaller(db: Db, tokenHash: string, now: string): Promise<Identified | undefined> {
  const row = await db
    .selectFrom('sessions')
    .innerJoin('users', 'users.id', 'sessions.user_id')
    .select('sessions.id')
    .select(['users.id as userId', 'users.email', 'users.organization_id as organizationId', 'users.role'])
    .where('sessions.token_hash', '=', tokenHash)
    .where('sessions.expires_at', '>', now)
    .executeTakeFirst();
  if (!row) return undefined;
  const { id, ...user } = row;
  return { kind: 'user', ...user, credential: { kind: 'session', id } };
}

export type StoredSession = Omit<Selectable<Tables['sessions']>, 'user_id' | 'token_hash'>;

export async function listSessions(db: Db, userId: number, now: string): Promise<StoredSession[]> {
  return db
    .selectFrom('sessions')
    .select(['id', 'name', 'created_at', 'expires_at', 'address'])
    .where('user_id', '=', userId)
    .where('expires_at', '>', now)
    .orderBy('id')
    .execute();
}

/** Returns when a user's session was opened; undefined if it is not valid at `now`. */
export async function findSessionStart(db: Db, userId: number, id: number, now: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('sessions')
    .select('created_at')
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .where('expires_at', '>', now)
    .executeTakeFirst();
  return row?.created_at;
}

/** Ends a session of a user and returns its name; undefined if it has already ended. */
export async function deleteSession(db: Db, userId: number, id: number): Promise<{ name: string } | undefined> {
  return db
    .deleteFrom('sessions')
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .returning('name')
    .executeTakeFirst();
}

export async function endSessions(db: Db, userId: number): Promise<number> {
  return (await db.deleteFrom('sessions').where('user_id', '=', userId).returning('id').execute()).length;
}

export async function endOldestSessions(db: Db, userId: number, kept: number): Promise<void> {
  const newestToGo = await db
    .selectFrom('sessions')
    .select('id')
    .where('user_id', '=', userId)
    .orderBy('id', 'desc')
    .offset(kept)
    .limit(1)
    .executeTakeFirst();
  if (!newestToGo) return;
  await db.deleteFrom('sessions').where('user_id', '=', userId).where('id', '<=', newestToGo.id).execute();
}

export async function deleteExpiredSessions(db: Db, now: string): Promise<void> {
  await db.deleteFrom('sessions').where('expires_at', '<=', now).execute();
}
