import type { Insertable, Selectable } from 'kysely';
import { countRows } from '../database.ts';
import type { Db, Tables } from '../tables.ts';

type StoredCode = Selectable<Tables['device_codes']>;

export async function insertDeviceCode(db: Db, code: Insertable<Tables['device_codes']>): Promise<void> {
  await db.insertInto('device_codes').values(code).execute();
}

export async function deleteExpiredDeviceCodes(db: Db, now: string): Promise<void> {
  await db.deleteFrom('device_codes').where('expires_at', '<=', now).execute();
}

/** Counts the stored codes: of one origin, or all. */
export async function countDeviceCodes(db: Db, origin?: string): Promise<number> {
  const all = db.selectFrom('device_codes');
  return countRows(origin === undefined ? all : all.where('origin', '=', origin));
}

/** Finds a code that waits for a decision. */
export async function findAskedCode(db: Db, userCodeHash: string, now: string): Promise<StoredCode | undefined> {
  return db
    .selectFrom('device_codes')
    .selectAll()
    .where('user_code_hash', '=', userCodeHash)
    .where('outcome', 'is', null)
    .where('expires_at', '>', now)
    .executeTakeFirst();
}

type Decision = Pick<
  StoredCode,
  'outcome' | 'user_id' | 'session_id' | 'proven_at' | 'redirect_code_hash' | 'expires_at'
>;

/** Stores the decision about a code; false if another one was made meanwhile. */
export async function decideCode(db: Db, id: number, decision: Decision): Promise<boolean> {
  const decided = await db
    .updateTable('device_codes')
    .set(decision)
    .where('id', '=', id)
    .where('outcome', 'is', null)
    .returning('id')
    .executeTakeFirst();
  return decided !== undefined;
}

export async function findDeviceCode(db: Db, deviceCodeHash: string, now: string): Promise<StoredCode | undefined> {
  return db
    .selectFrom('device_codes')
    .selectAll()
    .where('device_code_hash', '=', deviceCodeHash)
    .where('expires_at', '>', now)
    .executeTakeFirst();
}

/** Deletes a code; false if another request used it first. */
export async function takeDeviceCode(db: Db, id: number): Promise<boolean> {
  return (await db.deleteFrom('device_codes').where('id', '=', id).returning('id').executeTakeFirst()) !== undefined;
}
