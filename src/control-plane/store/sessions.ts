import type { Insertable, Selectable } from 'kysely';
import type { UserCaller } from '../domain/caller.ts';
import type { Db, Tables } from './tables.ts';

/** A caller without what the request itself adds. */
type Identified = Omit<UserCaller, 'address' | 'access'>;

/** Adds a session and gives its id. */
export async function insertSession(db: Db, session: Insertable<Tables['sessions']>): Promise<number> {
  const { id } = await db.insertInto('sessions').values(session).returning('id').executeTakeFirstOrThrow();
  return id;
}

/** Who holds this session token, if it is one that is valid at that instant. */
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

/** The sessions of a user that are valid at that instant. */
export async function listSessions(db: Db, userId: number, now: string): Promise<StoredSession[]> {
  return db
    .selectFrom('sessions')
    .select(['id', 'name', 'created_at', 'expires_at', 'address'])
    .where('user_id', '=', userId)
    .where('expires_at', '>', now)
    .orderBy('id')
    .execute();
}

/** When a session of a user was opened that is valid at that instant; undefined after its end. */
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

/** Ends a session of a user and gives its name; undefined when it had ended already. */
export async function deleteSession(db: Db, userId: number, id: number): Promise<{ name: string } | undefined> {
  return db
    .deleteFrom('sessions')
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .returning('name')
    .executeTakeFirst();
}

/** Ends all sessions of a user, and gives how many. */
export async function endSessions(db: Db, userId: number): Promise<number> {
  return (await db.deleteFrom('sessions').where('user_id', '=', userId).returning('id').execute()).length;
}

/** Ends all sessions of a user but the newest so many. */
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
