import type { Selectable } from 'kysely';
import type { Db, Tables } from '../tables.ts';

/** A user as its issuer identifies it. */
export interface IssuerSubject {
  readonly issuer: string;
  readonly subject: string;
}

export async function findUserOfIdentity(
  db: Db,
  { issuer, subject }: IssuerSubject,
): Promise<{ readonly id: number; readonly email: string; readonly organizationId: number } | undefined> {
  return db
    .selectFrom('identities')
    .innerJoin('users', 'users.id', 'identities.user_id')
    .select(['users.id', 'users.email', 'users.organization_id as organizationId'])
    .where('identities.issuer', '=', issuer)
    .where('identities.subject', '=', subject)
    .executeTakeFirst();
}

export async function findIdentity(db: Db, userId: number): Promise<Selectable<Tables['identities']> | undefined> {
  return db.selectFrom('identities').selectAll().where('user_id', '=', userId).executeTakeFirst();
}

export async function insertIdentity(db: Db, userId: number, identity: IssuerSubject): Promise<void> {
  const { issuer, subject } = identity;
  await db
    .insertInto('identities')
    .values({ user_id: userId, issuer, subject, last_login_at: null, confirmed_at: null })
    .execute();
}

export async function deleteIdentity(db: Db, userId: number): Promise<IssuerSubject | undefined> {
  return db.deleteFrom('identities').where('user_id', '=', userId).returning(['issuer', 'subject']).executeTakeFirst();
}

export async function recordIdentityLogin(db: Db, userId: number, at: string): Promise<void> {
  await db
    .updateTable('identities')
    .set({ last_login_at: at, confirmed_at: at })
    .where('user_id', '=', userId)
    .execute();
}

/** Lists the users of an issuer that have own devices. */
export async function listUsersWithDevices(
  db: Db,
  issuer: string,
): Promise<{ readonly userId: number; readonly organizationId: number }[]> {
  return db
    .selectFrom('identities')
    .innerJoin('users', 'users.id', 'identities.user_id')
    .innerJoin('peers', 'peers.user_id', 'users.id')
    .select(['users.id as userId', 'users.organization_id as organizationId'])
    .distinct()
    .where('identities.issuer', '=', issuer)
    .execute();
}

/** Records that the issuer confirmed a login of the user again. */
export async function recordConfirmation(db: Db, userId: number, at: string): Promise<void> {
  await db.updateTable('identities').set({ confirmed_at: at }).where('user_id', '=', userId).execute();
}
