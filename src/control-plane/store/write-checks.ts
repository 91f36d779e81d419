import type { Db } from './tables.ts';

const id = 1;

/** Writes a row and keeps it: a disk that is full fails at the commit. */
export async function writeCheck(db: Db, at: string): Promise<void> {
  await db
    .insertInto('write_checks')
    .values({ id, at })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ at }))
    .execute();
}
