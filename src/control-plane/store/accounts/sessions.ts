import { type Insertable, type Selectable, sql } from 'kysely';
import type { UserCaller } from '../../domain/caller.ts';
import { limitOfUser } from '../../domain/network-limit.ts';
import type { SessionBounds } from '../../domain/session-limits.ts';
import type { Db, Tables } from '../tables.ts';

type Identified = Omit<UserCaller, 'address' | 'access' | 'scope'>;

export async function insertSession(db: Db, session: Insertable<Tables['sessions']>): Promise<number> {
  const { id } = await db.insertInto('sessions').values(session).returning('id').executeTakeFirstOrThrow();
  return id;
}

export interface SessionHolder {
  readonly caller: Identified;
  readonly lastUsedAt: string;
  /** When an issuer last confirmed a login of the user; null for a user of none. */
  readonly confirmedAt: string | null;
  /** The issuer that is asked whether this session may last; null for none. */
  readonly isRenewedBy: string | null;
}

/** Finds the holder of a session that is within the bounds, with the user's current role. */
export async function findSessionHolder(
  db: Db,
  tokenHash: string,
  bounds: SessionBounds,
): Promise<SessionHolder | undefined> {
  const row = await db
    .selectFrom('sessions')
    .innerJoin('users', 'users.id', 'sessions.user_id')
    .leftJoin('identities', 'identities.user_id', 'users.id')
    .leftJoin('issuer_sessions', 'issuer_sessions.session_id', 'sessions.id')
    .select(['sessions.id', lastUse.as('lastUsedAt')])
    .select(['identities.confirmed_at as confirmedAt', 'identities.issuer', 'issuer_sessions.refresh_token as renewal'])
    .select([
      'users.id as userId',
      'users.email',
      'users.organization_id as organizationId',
      'users.role',
      'users.networks',
    ])
    .where('sessions.token_hash', '=', tokenHash)
    .where(isWithin(bounds))
    .executeTakeFirst();
  if (!row) return undefined;
  const { id, lastUsedAt, confirmedAt, issuer, renewal, ...user } = row;
  const credential = { kind: 'session', id, isLimited: false } as const;
  const isRenewedBy = renewal === null ? null : issuer;
  return {
    caller: { kind: 'user', ...user, networks: limitOfUser(user), credential },
    ...{ lastUsedAt, confirmedAt, isRenewedBy },
  };
}

export type StoredSession = Omit<
  Selectable<Tables['sessions']>,
  'user_id' | 'token_hash' | 'last_used_at' | 'proven_at'
> & {
  readonly last_used_at: string;
};

export async function listSessions(db: Db, userId: number, bounds: SessionBounds): Promise<StoredSession[]> {
  return db
    .selectFrom('sessions')
    .select(['id', 'name', 'created_at', 'expires_at', 'address', lastUse.as('last_used_at')])
    .where('user_id', '=', userId)
    .where(isWithin(bounds))
    .orderBy('id')
    .execute();
}

/** When the user of a session proved its identity; undefined if not within the bounds. */
export async function findSessionProof(
  db: Db,
  userId: number,
  id: number,
  bounds: SessionBounds,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('sessions')
    .select(['created_at', 'proven_at'])
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .where(isWithin(bounds))
    .executeTakeFirst();
  return row && (row.proven_at ?? row.created_at);
}

/** Records a use of a session, unless a use at or after `since` is recorded. */
export async function recordSessionUse(db: Db, id: number, now: string, since: string): Promise<void> {
  await db
    .updateTable('sessions')
    .set({ last_used_at: now })
    .where('id', '=', id)
    .where((eb) => eb(lastUse, '<', since))
    .execute();
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

/** Ends all sessions of a user, and its logins at an issuer that opened none yet. */
export async function endSessions(db: Db, userId: number): Promise<number> {
  await db.deleteFrom('login_attempts').where('user_id', '=', userId).execute();
  return (await db.deleteFrom('sessions').where('user_id', '=', userId).returning('id').execute()).length;
}

/** Ends the sessions of a user without a refresh token, and returns their number. */
export async function endUnrenewedSessions(db: Db, userId: number): Promise<number> {
  const renewed = db.selectFrom('issuer_sessions').select('session_id').where('refresh_token', 'is not', null);
  const query = db.deleteFrom('sessions').where('user_id', '=', userId).where('id', 'not in', renewed);
  return (await query.returning('id').execute()).length;
}

/** Ends the sessions of a user that were opened by then, and returns their number. */
export async function endSessionsBefore(db: Db, userId: number, before: string): Promise<number> {
  await db.deleteFrom('login_attempts').where('user_id', '=', userId).where('created_at', '<=', before).execute();
  const query = db.deleteFrom('sessions').where('user_id', '=', userId).where('created_at', '<=', before);
  return (await query.returning('id').execute()).length;
}

export async function endOtherSessions(db: Db, userId: number, kept: number): Promise<number> {
  const others = db.deleteFrom('sessions').where('user_id', '=', userId).where('id', '<>', kept);
  return (await others.returning('id').execute()).length;
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

export async function deleteExpiredSessions(db: Db, bounds: SessionBounds): Promise<void> {
  await db
    .deleteFrom('sessions')
    .where((eb) => eb.not(isWithin(bounds)))
    .execute();
}

/** The last use of a session; its login if none is stored, as for sessions of version 0.1. */
const lastUse = sql<string>`coalesce(sessions.last_used_at, sessions.created_at)`;

const isWithin = ({ now, openedAfter, usedAfter }: SessionBounds) =>
  sql<boolean>`(sessions.expires_at > ${now} and sessions.created_at > ${openedAfter} and ${lastUse} > ${usedAfter})`;
