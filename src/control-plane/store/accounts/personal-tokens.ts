import type { Insertable, Selectable } from 'kysely';
import type { UserCaller } from '../../domain/caller.ts';
import { countRows } from '../database.ts';
import { readPage, type Slice, type StoredPage } from '../page.ts';
import type { Db, Tables } from '../tables.ts';

export type StoredToken = Omit<Selectable<Tables['personal_tokens']>, 'user_id' | 'token_hash'>;

export interface TokenHolder {
  readonly caller: Omit<UserCaller, 'address' | 'access'>;
  readonly lastUsedAt: string | null;
  /** The last login of the user at its issuer; null for a user without one. */
  readonly lastLogin: string | null;
}

export async function listTokens(db: Db, userId: number, slice: Slice): Promise<StoredPage<StoredToken>> {
  return readPage(db, db.selectFrom('personal_tokens').select(columns).where('user_id', '=', userId), slice);
}

export async function countTokens(db: Db, userId: number): Promise<number> {
  return countRows(db.selectFrom('personal_tokens').where('user_id', '=', userId));
}

export async function insertToken(db: Db, token: Insertable<Tables['personal_tokens']>): Promise<StoredToken> {
  return db.insertInto('personal_tokens').values(token).returning(columns).executeTakeFirstOrThrow();
}

/** Revokes a token of a user and returns it; undefined if there is no such token. */
export async function deleteToken(db: Db, userId: number, id: number): Promise<StoredToken | undefined> {
  return db
    .deleteFrom('personal_tokens')
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .returning(columns)
    .executeTakeFirst();
}

/** Revokes all tokens of a user. Returns the tokens that were still valid, oldest first. */
export async function deleteTokens(db: Db, userId: number, now: string): Promise<StoredToken[]> {
  const tokens = await db.deleteFrom('personal_tokens').where('user_id', '=', userId).returning(columns).execute();
  return tokens
    .filter(({ expires_at }) => expires_at === null || expires_at > now)
    .toSorted((left, right) => left.id - right.id);
}

export async function deleteExpiredTokens(db: Db, userId: number, now: string): Promise<void> {
  await db.deleteFrom('personal_tokens').where('user_id', '=', userId).where('expires_at', '<=', now).execute();
}

/** Finds the holder of a personal token that is valid at `now`, with the user's current role. */
export async function findTokenHolder(db: Db, tokenHash: string, now: string): Promise<TokenHolder | undefined> {
  const row = await db
    .selectFrom('personal_tokens as tokens')
    .innerJoin('users', 'users.id', 'tokens.user_id')
    .leftJoin('identities', 'identities.user_id', 'users.id')
    .select(['tokens.id', 'tokens.last_used_at as lastUsedAt', 'identities.last_login_at as lastLogin'])
    .select(['users.id as userId', 'users.email', 'users.organization_id as organizationId', 'users.role'])
    .where('tokens.token_hash', '=', tokenHash)
    .where((eb) => eb.or([eb('tokens.expires_at', 'is', null), eb('tokens.expires_at', '>', now)]))
    .executeTakeFirst();
  if (!row) return undefined;
  const { id, lastUsedAt, lastLogin, ...user } = row;
  return { caller: { kind: 'user', ...user, credential: { kind: 'token', id } }, lastUsedAt, lastLogin };
}

export async function isTokenValid(db: Db, userId: number, id: number, now: string): Promise<boolean> {
  const row = await db
    .selectFrom('personal_tokens')
    .select('id')
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
    .executeTakeFirst();
  return row !== undefined;
}

/** Records a use of a token, unless a use at or after `since` is recorded. */
export async function recordTokenUse(db: Db, id: number, now: string, since: string): Promise<void> {
  await db
    .updateTable('personal_tokens')
    .set({ last_used_at: now })
    .where('id', '=', id)
    .where((eb) => eb.or([eb('last_used_at', 'is', null), eb('last_used_at', '<', since)]))
    .execute();
}

const columns = ['id', 'name', 'created_at', 'expires_at', 'last_used_at'] as const;
