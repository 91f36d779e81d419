import { type Insertable, type Selectable, sql } from 'kysely';
import type { NetworkLimit, Profile, Role } from '../../../contract/auth.ts';
import { formatLimit, limitOfUser } from '../../domain/network-limit.ts';
import { locksRows, requireVersion } from '../database.ts';
import { mapPage, readPage, type Slice, type StoredPage } from '../page.ts';
import type { Db, Tables } from '../tables.ts';
import { deleteFactors } from './second-factors.ts';

export type StoredUser = Pick<Selectable<Tables['users']>, 'id' | 'email' | 'role' | 'created_at'> & {
  readonly networks: NetworkLimit;
};

/** In place of the hash of a password. No password matches it. */
export const noPassword = '';

export async function isAnyUser(db: Db): Promise<boolean> {
  return (await db.selectFrom('users').select('id').limit(1).executeTakeFirst()) !== undefined;
}

export async function insertOrganization(db: Db, name: string): Promise<number> {
  const { id } = await db.insertInto('organizations').values({ name }).returning('id').executeTakeFirstOrThrow();
  return id;
}

export async function insertUser(db: Db, user: Insertable<Tables['users']>): Promise<number> {
  const { id } = await db.insertInto('users').values(user).returning('id').executeTakeFirstOrThrow();
  return id;
}

/** Adds a user; undefined if a user of any organization has its e-mail address. */
export async function insertUnknownUser(db: Db, user: Insertable<Tables['users']>): Promise<StoredUser | undefined> {
  const row = await db
    .insertInto('users')
    .values(user)
    .onConflict((conflict) => conflict.column('email').doNothing())
    .returning(columns)
    .executeTakeFirst();
  if (row && row.networks !== null) await noteLimits(db);
  return row && toUser(row);
}

/** A user in a list, with its subject at the issuer; null for a user that only has a password. */
export type ListedUser = StoredUser & { readonly subject: string | null; readonly has_second_factor: boolean };

export async function listUsers(db: Db, organizationId: number, slice: Slice): Promise<StoredPage<ListedUser>> {
  const factors = sql<number>`(select count(*) from second_factors where second_factors.user_id = users.id)`;
  const list = db
    .selectFrom('users')
    .select(columns)
    .select(factors.as('factors'))
    .select((eb) =>
      eb.selectFrom('identities').select('subject').whereRef('identities.user_id', '=', 'users.id').as('subject'),
    )
    .where('organization_id', '=', organizationId);
  const page = await readPage(db, list, slice);
  return mapPage(page, ({ factors: count, subject, ...row }) => ({
    ...toUser(row),
    subject,
    has_second_factor: Number(count) > 0,
  }));
}

/** Finds and locks a user. Other transactions that lock or delete the user wait. */
export async function lockUser(db: Db, organizationId: number, id: number): Promise<StoredUser | undefined> {
  const row = await db
    .selectFrom('users')
    .select(columns)
    .where('id', '=', id)
    .where('organization_id', '=', organizationId)
    .$if(locksRows(db), (query) => query.forNoKeyUpdate())
    .executeTakeFirst();
  return row && toUser(row);
}

/** Locks a user like {@link lockUser}, of any organization. */
export async function lockUserById(
  db: Db,
  id: number,
): Promise<Pick<Selectable<Tables['users']>, 'id' | 'email' | 'organization_id'> | undefined> {
  return db
    .selectFrom('users')
    .select(['id', 'email', 'organization_id'])
    .where('id', '=', id)
    .$if(locksRows(db), (query) => query.forNoKeyUpdate())
    .executeTakeFirst();
}

/** Locks a user like {@link lockUser}, if the user's password still has this hash. */
export async function lockUserWithPassword(db: Db, id: number, passwordHash: string): Promise<StoredUser | undefined> {
  const row = await db
    .selectFrom('users')
    .select(columns)
    .where('id', '=', id)
    .where('password_hash', '=', passwordHash)
    .$if(locksRows(db), (query) => query.forNoKeyUpdate())
    .executeTakeFirst();
  return row && toUser(row);
}

export async function hasPassword(db: Db, id: number): Promise<boolean> {
  const user = await db.selectFrom('users').select('password_hash').where('id', '=', id).executeTakeFirst();
  return user !== undefined && user.password_hash !== noPassword;
}

export async function setPassword(db: Db, id: number, passwordHash: string): Promise<void> {
  await db.updateTable('users').set({ password_hash: passwordHash }).where('id', '=', id).execute();
}

/** Sets an owner's password; undefined if there is no owner with this address, in lower case. */
export async function setPasswordOfOwner(
  db: Db,
  email: string,
  passwordHash: string,
  reset_at: string,
): Promise<Pick<Selectable<Tables['users']>, 'id' | 'organization_id'> | undefined> {
  return db
    .updateTable('users')
    .set({ password_hash: passwordHash, reset_at })
    .where('email', '=', email)
    .where('role', '=', 'owner')
    .returning(['id', 'organization_id'])
    .executeTakeFirst();
}

/** Lists the e-mail addresses of the owners of one or all organizations. */
export async function listOwners(db: Db, organizationId?: number): Promise<string[]> {
  const owners = db.selectFrom('users').select('email').where('role', '=', 'owner').orderBy('id');
  const those = organizationId === undefined ? owners : owners.where('organization_id', '=', organizationId);
  return (await those.execute()).map(({ email }) => email);
}

/** Sets the e-mail address of a user. False if another user has it. */
export async function setEmailIfFree(db: Db, id: number, email: string): Promise<boolean> {
  const set = await db
    .updateTable('users')
    .set({ email })
    .where('id', '=', id)
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('users as others').select('others.id').where('others.email', '=', email))),
    )
    .returning('id')
    .executeTakeFirst();
  return set !== undefined;
}

export interface Rights {
  readonly role: Role;
  readonly networks: NetworkLimit;
}

export async function setRights(db: Db, id: number, { role, networks }: Rights): Promise<StoredUser> {
  const row = await db
    .updateTable('users')
    .set({ role, networks: formatLimit(networks) })
    .where('id', '=', id)
    .returning(columns)
    .executeTakeFirstOrThrow();
  await noteLimits(db);
  return toUser(row);
}

/** Locks an organization. Other transactions that lock it wait until this one ends. */
export async function lockOrganization(db: Db, id: number): Promise<void> {
  const query = db.selectFrom('organizations').select('id').where('id', '=', id);
  if (locksRows(db)) await query.forNoKeyUpdate().execute();
}

/** Returns the id of the organization if there is exactly one. */
export async function findOnlyOrganization(db: Db): Promise<number | undefined> {
  const [first, ...others] = await db.selectFrom('organizations').select('id').limit(2).execute();
  return others.length > 0 ? undefined : first?.id;
}

export async function findOrganizationByName(db: Db, name: string): Promise<number | undefined> {
  const query = db.selectFrom('organizations').select('id').where('name', '=', name).orderBy('id');
  return (await query.executeTakeFirst())?.id;
}

export async function findUserById(
  db: Db,
  id: number,
): Promise<{ readonly id: number; readonly organizationId: number } | undefined> {
  return db
    .selectFrom('users')
    .select(['id', 'organization_id as organizationId'])
    .where('id', '=', id)
    .executeTakeFirst();
}

/** Deletes a user with all sessions and tokens. */
export async function deleteUser(db: Db, organizationId: number, id: number): Promise<void> {
  await deleteFactors(db, id);
  await db.deleteFrom('users').where('id', '=', id).where('organization_id', '=', organizationId).execute();
  await noteLimits(db);
}

/** A user with the fields of a password check. */
interface UserWithPassword {
  readonly id: number;
  readonly organization_id: number;
  /** Null without a password. */
  readonly password_hash: string | null;
  readonly reset_at: string | null;
}

/** Finds a user by e-mail address, in lower case. */
export async function findUserByEmail(db: Db, email: string): Promise<UserWithPassword | undefined> {
  const user = await db
    .selectFrom('users')
    .select(['id', 'organization_id', 'password_hash', 'reset_at'])
    .where('email', '=', email)
    .executeTakeFirst();
  return user && { ...user, password_hash: user.password_hash === noPassword ? null : user.password_hash };
}

export async function findUser(db: Db, organizationId: number, id: number): Promise<(Profile & Rights) | undefined> {
  const row = await db
    .selectFrom('users')
    .innerJoin('organizations', 'organizations.id', 'users.organization_id')
    .select(['users.id', 'users.email', 'users.role', 'users.networks'])
    .select(['organizations.id as organizationId', 'organizations.name'])
    .where('users.id', '=', id)
    .where('organizations.id', '=', organizationId)
    .executeTakeFirst();
  if (!row) return undefined;
  const { organizationId: owner, name, ...user } = row;
  return { ...user, networks: limitOfUser(user), organization: { id: owner, name } };
}

/** The migration with which a version has limits. */
const limitsMigration = '0037-network-limits';

/**
 * Must follow each change of users or tokens that have or had a limit: a version without limits
 * does not start while there are any.
 */
export async function noteLimits(db: Db): Promise<void> {
  const user = db.selectFrom('users').select('id').where('networks', 'is not', null).where('role', '<>', 'owner');
  const token = db.selectFrom('personal_tokens').select('id').where('networks', 'is not', null);
  const first = (await user.limit(1).executeTakeFirst()) ?? (await token.limit(1).executeTakeFirst());
  await requireVersion(db, limitsMigration, first !== undefined);
}

const columns = ['id', 'email', 'role', 'created_at', 'networks'] as const;

function toUser(row: Pick<Selectable<Tables['users']>, (typeof columns)[number]>): StoredUser {
  return { ...row, networks: limitOfUser(row) };
}
