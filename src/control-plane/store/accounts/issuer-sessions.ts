import type { Insertable } from 'kysely';
import type { Db, Tables } from '../tables.ts';

export async function insertIssuerSession(db: Db, session: Insertable<Tables['issuer_sessions']>): Promise<void> {
  await db.insertInto('issuer_sessions').values(session).execute();
}

/** A session whose issuer is to be asked. */
export interface DueSession {
  readonly id: number;
  readonly refreshToken: string;
  readonly nextAt: string;
  readonly userId: number;
  readonly subject: string;
}

/** The sessions of an issuer's users that are due, the longest due first. */
export async function listDueSessions(db: Db, issuer: string, now: string, limit: number): Promise<DueSession[]> {
  return db
    .selectFrom('issuer_sessions')
    .innerJoin('sessions', 'sessions.id', 'issuer_sessions.session_id')
    .innerJoin('identities', 'identities.user_id', 'sessions.user_id')
    .select(['sessions.id', 'issuer_sessions.next_at as nextAt', 'sessions.user_id as userId', 'identities.subject'])
    .select(({ fn }) => fn.coalesce('issuer_sessions.refresh_token', ({ val }) => val('')).as('refreshToken'))
    .where('issuer_sessions.refresh_token', 'is not', null)
    .where('issuer_sessions.next_at', '<=', now)
    .where('identities.issuer', '=', issuer)
    .orderBy('issuer_sessions.next_at')
    .limit(limit)
    .execute();
}

/** Takes a due session for this process. False if another process took it. */
export async function takeDueSession(db: Db, { id, nextAt }: DueSession, until: string): Promise<boolean> {
  const taken = await db
    .updateTable('issuer_sessions')
    .set({ next_at: until })
    .where('session_id', '=', id)
    .where('next_at', '=', nextAt)
    .returning('session_id')
    .executeTakeFirst();
  return taken !== undefined;
}

export async function setRefreshToken(db: Db, id: number, refreshToken: string | null): Promise<void> {
  await db.updateTable('issuer_sessions').set({ refresh_token: refreshToken }).where('session_id', '=', id).execute();
}

/** A session that a logout at the issuer ends. */
export interface EndedSession {
  readonly id: number;
  readonly name: string;
  readonly userId: number;
}

/** Lists the sessions with this id at the issuer that were opened by `before`. */
export async function listSessionsOfIssuer(
  db: Db,
  { issuer, session, before }: { readonly issuer: string; readonly session: string; readonly before: string },
): Promise<EndedSession[]> {
  return db
    .selectFrom('issuer_sessions')
    .innerJoin('sessions', 'sessions.id', 'issuer_sessions.session_id')
    .innerJoin('identities', 'identities.user_id', 'sessions.user_id')
    .select(['sessions.id', 'sessions.name', 'sessions.user_id as userId'])
    .where('issuer_sessions.issuer_session', '=', session)
    .where('identities.issuer', '=', issuer)
    .where('sessions.created_at', '<=', before)
    .execute();
}

/** True if the user of a session still has an identity. */
export async function isSessionOfIdentity(db: Db, session: number): Promise<boolean> {
  const row = await db
    .selectFrom('sessions')
    .innerJoin('identities', 'identities.user_id', 'sessions.user_id')
    .select('sessions.id')
    .where('sessions.id', '=', session)
    .executeTakeFirst();
  return row !== undefined;
}
