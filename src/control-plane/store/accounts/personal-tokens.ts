import type { Insertable, Selectable } from 'kysely';
import type { NetworkLimit } from '../../../contract/auth.ts';
import type { UserCaller } from '../../domain/caller.ts';
import { intersect, limitOfUser, parseLimit } from '../../domain/network-limit.ts';
import { countRows } from '../database.ts';
import { mapPage, readPage, type Slice, type StoredPage } from '../page.ts';
import type { Db, Tables } from '../tables.ts';
import { noteLimits } from './users.ts';

export type StoredToken = Omit<Selectable<Tables['personal_tokens']>, 'user_id' | 'token_hash' | 'networks'> & {
  /** The limit of the token itself, without that of its user. */
  readonly networks: NetworkLimit;
};

export interface TokenHolder {
  readonly caller: Omit<UserCaller, 'address' | 'access' | 'scope'>;
  readonly lastUsedAt: string | null;
  /** The last login of the user at its issuer; null for a user without one. */
  readonly lastLogin: string | null;
}

export async function listTokens(db: Db, userId: number, slice: Slice): Promise<StoredPage<StoredToken>> {
  const list = db.selectFrom('personal_tokens').select(columns).where('user_id', '=', userId);
  return mapPage(await readPage(db, list, slice), toToken);
}

export async function countTokens(db: Db, userId: number): Promise<number> {
  return countRows(db.selectFrom('personal_tokens').where('user_id', '=', userId));
}

export async function insertToken(db: Db, token: Insertable<Tables['personal_tokens']>): Promise<StoredToken> {
  const row = await db.insertInto('personal_tokens').values(token).returning(columns).executeTakeFirstOrThrow();
  return noteLimitsOf(db, toToken(row));
}

/** Revokes a token of a user and returns it; undefined if there is no such token. */
export async function deleteToken(db: Db, userId: number, id: number): Promise<StoredToken | undefined> {
  const row = await db
    .deleteFrom('personal_tokens')
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .returning(columns)
    .executeTakeFirst();
  return row && noteLimitsOf(db, toToken(row));
}

async function noteLimitsOf(db: Db, token: StoredToken): Promise<StoredToken> {
  if (token.networks !== null) await noteLimits(db);
  return token;
}

/** Revokes all tokens of a user. Returns the tokens that were still valid, oldest first. */
export async function deleteTokens(db: Db, userId: number, now: string): Promise<StoredToken[]> {
  const rows = await db.deleteFrom('personal_tokens').where('user_id', '=', userId).returning(columns).execute();
  if (rows.some(({ networks }) => networks !== null)) await noteLimits(db);
  return rows
    .map(toToken)
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
    .select(['tokens.id', 'tokens.last_used_at as lastUsedAt', 'tokens.networks as own'])
    .select([
      'users.id as userId',
      'users.email',
      'users.organization_id as organizationId',
      'users.role',
      'users.networks',
      'identities.last_login_at as lastLogin',
    ])
    .where('tokens.token_hash', '=', tokenHash)
    .where((eb) => eb.or([eb('tokens.expires_at', 'is', null), eb('tokens.expires_at', '>', now)]))
    .executeTakeFirst();
  if (!row) return undefined;
  const { id, lastUsedAt, lastLogin, own, ...user } = row;
  const networks = intersect(limitOfUser(user), parseLimit(own));
  const credential = { kind: 'token', id, isLimited: own !== null } as const;
  return { caller: { kind: 'user', ...user, networks, credential }, lastUsedAt, lastLogin };
}

/** Finds a token of a user that is valid at `now`. */
export async function findValidToken(
  db: Db,
  userId: number,
  id: number,
  now: string,
): Promise<Pick<StoredToken, 'networks'> | undefined> {
  const row = await db
    .selectFrom('personal_tokens')
    .select('networks')
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
    .executeTakeFirst();
  return row && { networks: parseLimit(row.networks) };
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

const columns = ['id', 'name', 'created_at', 'expires_at', 'last_used_at', 'networks'] as const;

function toToken(row: Omit<Selectable<Tables['personal_tokens']>, 'user_id' | 'token_hash'>): StoredToken {
  return { ...row, networks: parseLimit(row.networks) };
}
