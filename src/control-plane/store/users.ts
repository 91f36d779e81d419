import type { Insertable, Selectable } from 'kysely';
import type { Role } from '../../contract/auth.ts';
import type { Db, Tables } from './tables.ts';

export interface User {
  readonly id: number;
  readonly email: string;
  readonly role: Role;
  readonly organization: { readonly id: number; readonly name: string };
}

export async function isAnyUser(db: Db): Promise<boolean> {
  return (await db.selectFrom('users').select('id').limit(1).executeTakeFirst()) !== undefined;
}

/** Adds an organization and gives its id. */
export async function insertOrganization(db: Db, name: string): Promise<number> {
  const { id } = await db.insertInto('organizations').values({ name }).returning('id').executeTakeFirstOrThrow();
  return id;
}

/** Adds a user and gives its id. */
export async function insertUser(db: Db, user: Insertable<Tables['users']>): Promise<number> {
  const { id } = await db.insertInto('users').values(user).returning('id').executeTakeFirstOrThrow();
  return id;
}

/** The user with this e-mail address, in lower case, and what is needed to check a password. */
export async function findUserByEmail(
  db: Db,
  email: string,
): Promise<Pick<Selectable<Tables['users']>, 'id' | 'password_hash'> | undefined> {
  return db.selectFrom('users').select(['id', 'password_hash']).where('email', '=', email).executeTakeFirst();
}

export async function findUser(db: Db, organizationId: number, id: number): Promise<User | undefined> {
  const row = await db
    .selectFrom('users')
    .innerJoin('organizations', 'organizations.id', 'users.organization_id')
    .select(['users.id', 'users.email', 'users.role', 'organizations.id as organizationId', 'organizations.name'])
    .where('users.id', '=', id)
    .where('organizations.id', '=', organizationId)
    .executeTakeFirst();
  return (
    row && {
      id: row.id,
      email: row.email,
      role: row.role,
      organization: { id: row.organizationId, name: row.name },
    }
  );
}
