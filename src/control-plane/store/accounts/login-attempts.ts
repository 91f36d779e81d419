import type { Insertable, Selectable } from 'kysely';
import { countRows } from '../database.ts';
import type { Db, Tables } from '../tables.ts';

export type StoredAttempt = Selectable<Tables['login_attempts']>;

/** What became of an attempt when the browser came back from the issuer. */
export type Outcome = Pick<StoredAttempt, 'user_id' | 'subject' | 'refusal' | 'issuer_session' | 'refresh_token'>;

export async function insertAttempt(
  db: Db,
  attempt: Omit<Insertable<Tables['login_attempts']>, keyof Outcome>,
): Promise<void> {
  const open = { user_id: null, subject: null, refusal: null, issuer_session: null, refresh_token: null };
  await db
    .insertInto('login_attempts')
    .values({ ...attempt, ...open })
    .execute();
}

export async function deleteAttemptsBefore(db: Db, at: string): Promise<void> {
  await db.deleteFrom('login_attempts').where('created_at', '<=', at).execute();
}

/** Counts all attempts. Deletes the oldest ones of an address, down to `kept`. */
export async function limitAttempts(db: Db, address: string, kept: number): Promise<number> {
  const surplus = await db
    .selectFrom('login_attempts')
    .select('id')
    .where('address', '=', address)
    .orderBy('id', 'desc')
    .offset(kept)
    .limit(1)
    .executeTakeFirst();
  if (surplus)
    await db.deleteFrom('login_attempts').where('address', '=', address).where('id', '<=', surplus.id).execute();
  return countRows(db.selectFrom('login_attempts'));
}

/** Finds an attempt that has no outcome yet, by the hash of its state. */
export async function findOpenAttempt(db: Db, stateHash: string, after: string): Promise<StoredAttempt | undefined> {
  return db
    .selectFrom('login_attempts')
    .selectAll()
    .where('state_hash', '=', stateHash)
    .where('user_id', 'is', null)
    .where('refusal', 'is', null)
    .where('verifier', '!=', '')
    .where('created_at', '>', after)
    .executeTakeFirst();
}

/** Takes the verifier of an open attempt: its code is redeemed once. False if it is gone. */
export async function takeVerifier(db: Db, id: number): Promise<boolean> {
  const taken = await db
    .updateTable('login_attempts')
    .set({ verifier: '' })
    .where('id', '=', id)
    .where('verifier', '!=', '')
    .returning('id')
    .executeTakeFirst();
  return taken !== undefined;
}

export async function setOutcome(db: Db, id: number, outcome: Outcome): Promise<void> {
  await db.updateTable('login_attempts').set(outcome).where('id', '=', id).execute();
}

/** Deletes and returns the attempts of a browser that have an outcome, newest last. */
export async function takeOutcomes(db: Db, browserHash: string, after: string): Promise<StoredAttempt[]> {
  const rows = await db
    .deleteFrom('login_attempts')
    .where('browser_hash', '=', browserHash)
    .where((eb) => eb.or([eb('user_id', 'is not', null), eb('refusal', 'is not', null)]))
    .where('created_at', '>', after)
    .returningAll()
    .execute();
  return rows.sort((a, b) => a.id - b.id);
}
