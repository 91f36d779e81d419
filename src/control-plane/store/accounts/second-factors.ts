import type { Insertable, Selectable } from 'kysely';
import { countRows, requireVersion } from '../database.ts';
import type { Db, Tables } from '../tables.ts';

/** What a login with a factor needs. `failures` since the last success, until `failedAt`. */
export type FactorData =
  | {
      readonly secret: string;
      /** The step of the last accepted code: a code is accepted once (RFC 6238, 5.2). */
      readonly lastStep: number;
      readonly failures?: number;
      readonly failedAt?: string;
    }
  | {
      readonly rpId: string;
      readonly credentialId: string;
      /** In base64url. */
      readonly publicKey: string;
      readonly counter: number;
    };

export type StoredFactor = Omit<Selectable<Tables['second_factors']>, 'user_id' | 'data'> & {
  readonly data: FactorData;
};

/** The caller has locked the user, if it changes what it read. */
export async function listFactors(db: Db, userId: number): Promise<StoredFactor[]> {
  const rows = await db
    .selectFrom('second_factors')
    .select(['id', 'kind', 'name', 'data', 'created_at', 'last_used_at'])
    .where('user_id', '=', userId)
    .orderBy('id')
    .execute();
  return rows.map((row) => ({ ...row, data: JSON.parse(row.data) }));
}

export async function hasFactor(db: Db, userId: number): Promise<boolean> {
  const query = db.selectFrom('second_factors').select('id').where('user_id', '=', userId).limit(1);
  return (await query.executeTakeFirst()) !== undefined;
}

export async function insertFactor(
  db: Db,
  { data, ...row }: Omit<Insertable<Tables['second_factors']>, 'data'> & { readonly data: FactorData },
): Promise<number> {
  const values = { ...row, data: JSON.stringify(data) };
  const { id } = await db.insertInto('second_factors').values(values).returning('id').executeTakeFirstOrThrow();
  await requireFactorVersion(db);
  return id;
}

/** Replaces the data of a factor; with `usedAt`, records a use. */
export async function updateFactor(db: Db, id: number, data: FactorData, usedAt?: string): Promise<void> {
  await db
    .updateTable('second_factors')
    .set({ data: JSON.stringify(data), ...(usedAt !== undefined && { last_used_at: usedAt }) })
    .where('id', '=', id)
    .execute();
}

/** Removes a factor of a user and returns its name; undefined if there is none. */
export async function deleteFactor(
  db: Db,
  userId: number,
  id: number,
): Promise<Pick<StoredFactor, 'kind' | 'name'> | undefined> {
  const deleted = await db
    .deleteFrom('second_factors')
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .returning(['kind', 'name'])
    .executeTakeFirst();
  await requireFactorVersion(db);
  return deleted;
}

/** Removes all factors, recovery codes and challenges of a user. Returns the number of factors. */
export async function deleteFactors(db: Db, userId: number): Promise<number> {
  await db.deleteFrom('recovery_codes').where('user_id', '=', userId).execute();
  await deleteChallenges(db, userId);
  const deleted = await db.deleteFrom('second_factors').where('user_id', '=', userId).returning('id').execute();
  if (deleted.length > 0) await requireFactorVersion(db);
  return deleted.length;
}

/** Lets no version without second factors start while there is one: its logins need a password. */
async function requireFactorVersion(db: Db): Promise<void> {
  const any = await db.selectFrom('second_factors').select('id').limit(1).executeTakeFirst();
  await requireVersion(db, '0035-second-factors', any !== undefined);
}

export async function countRecoveryCodes(db: Db, userId: number): Promise<number> {
  return countRows(db.selectFrom('recovery_codes').where('user_id', '=', userId));
}

export async function replaceRecoveryCodes(db: Db, userId: number, hashes: readonly string[]): Promise<void> {
  await db.deleteFrom('recovery_codes').where('user_id', '=', userId).execute();
  if (hashes.length === 0) return;
  const rows = hashes.map((code_hash) => ({ user_id: userId, code_hash }));
  await db.insertInto('recovery_codes').values(rows).execute();
}

/** Deletes a recovery code; false if the user has no such unused code. */
export async function useRecoveryCode(db: Db, userId: number, hash: string): Promise<boolean> {
  const used = await db
    .deleteFrom('recovery_codes')
    .where('user_id', '=', userId)
    .where('code_hash', '=', hash)
    .returning('user_id')
    .executeTakeFirst();
  return used !== undefined;
}

/** What the challenge is for, and what its answer is compared with. */
export type ChallengeData =
  | {
      readonly kind: 'login';
      readonly device: string;
      /** The source address. Earlier versions stored none. */
      readonly address?: string;
      readonly passkey: PasskeyChallenge | null;
    }
  | { readonly kind: 'totp'; readonly secret: string }
  | { readonly kind: 'passkey'; readonly passkey: PasskeyChallenge };

/** The random value that a passkey signs, and the page that asked for it. */
export interface PasskeyChallenge {
  readonly value: string;
  readonly rpId: string;
  readonly origin: string;
}

export type StoredChallenge = Omit<Selectable<Tables['factor_challenges']>, 'token_hash' | 'data' | 'expires_at'> &
  Pick<Selectable<Tables['users']>, 'email' | 'organization_id'> & { readonly data: ChallengeData };

export type ListedChallenge = StoredChallenge & Pick<Selectable<Tables['factor_challenges']>, 'expires_at'>;

export async function insertChallenge(
  db: Db,
  { data, ...row }: Omit<Insertable<Tables['factor_challenges']>, 'data'> & { readonly data: ChallengeData },
): Promise<void> {
  await db
    .insertInto('factor_challenges')
    .values({ ...row, data: JSON.stringify(data) })
    .execute();
}

/** All challenges of a user, the oldest first, also expired ones. */
export async function listChallenges(db: Db, userId: number): Promise<ListedChallenge[]> {
  const rows = await selectChallenges(db)
    .select('expires_at')
    .where('user_id', '=', userId)
    .orderBy('factor_challenges.id')
    .execute();
  return rows.map((row) => ({ ...row, data: JSON.parse(row.data) }));
}

function selectChallenges(db: Db) {
  return db
    .selectFrom('factor_challenges')
    .innerJoin('users', 'users.id', 'factor_challenges.user_id')
    .select(['factor_challenges.id', 'user_id', 'session_id', 'data', 'tries', 'email', 'organization_id']);
}

/** Finds a challenge that has not expired. The caller locks its user, and then finds it again. */
export async function findChallenge(db: Db, tokenHash: string, now: string): Promise<StoredChallenge | undefined> {
  const row = await selectChallenges(db)
    .where('token_hash', '=', tokenHash)
    .where('expires_at', '>', now)
    .executeTakeFirst();
  return row && { ...row, data: JSON.parse(row.data) };
}

export async function countTry(db: Db, id: number): Promise<void> {
  await db
    .updateTable('factor_challenges')
    .set(({ eb }) => ({ tries: eb('tries', '+', 1) }))
    .where('id', '=', id)
    .execute();
}

export async function deleteChallenge(db: Db, id: number): Promise<void> {
  await db.deleteFrom('factor_challenges').where('id', '=', id).execute();
}

/** A new password, or new factors, void the logins that wait for a second factor. */
export async function deleteChallenges(db: Db, userId: number): Promise<void> {
  await db.deleteFrom('factor_challenges').where('user_id', '=', userId).execute();
}
