import { countRows } from './database.ts';
import type { Db } from './tables.ts';

/** Registers a receiver. It receives what is chained from then on. */
export async function registerReceiver(db: Db, name: string): Promise<void> {
  const added = await db
    .insertInto('audit_receivers')
    .values({ name, holder: '', held_until: '' })
    .onConflict((conflict) => conflict.doNothing())
    .returning('name')
    .execute();
  if (added.length === 0) return;
  const chains = await db.selectFrom('audit_chains').select(['organization_id', 'seq']).execute();
  const positions = chains.map((each) => ({ ...each, receiver: name }));
  if (positions.length > 0) await db.insertInto('audit_positions').values(positions).execute();
}

/** Lets one process at a time send to a receiver. False while another one does. */
export async function holdReceiver(
  db: Db,
  {
    name,
    holder,
    now,
    until,
  }: { readonly name: string; readonly holder: string; readonly now: string; readonly until: string },
): Promise<boolean> {
  const held = await db
    .updateTable('audit_receivers')
    .set({ holder, held_until: until })
    .where('name', '=', name)
    .where((eb) => eb.or([eb('holder', '=', holder), eb('held_until', '<=', now)]))
    .returning('name')
    .execute();
  return held.length > 0;
}

/** Ends the hold, so that another process need not wait for its end. */
export async function releaseReceiver(db: Db, name: string, holder: string): Promise<void> {
  await db
    .updateTable('audit_receivers')
    .set({ held_until: '' })
    .where('name', '=', name)
    .where('holder', '=', holder)
    .execute();
}

/** The organizations whose chain is longer than what a receiver has, with its last link. */
export async function listBehind(
  db: Db,
  receiver: string,
): Promise<{ readonly organization: number; readonly seq: number }[]> {
  return db
    .selectFrom('audit_chains')
    .leftJoin('audit_positions', (join) =>
      join
        .onRef('audit_positions.organization_id', '=', 'audit_chains.organization_id')
        .on('audit_positions.receiver', '=', receiver),
    )
    .select((eb) => [
      'audit_chains.organization_id as organization',
      eb.fn.coalesce('audit_positions.seq', eb.lit(0)).as('seq'),
    ])
    .where((eb) => eb('audit_chains.seq', '>', eb.fn.coalesce('audit_positions.seq', eb.lit(0))))
    .orderBy('audit_chains.organization_id')
    .execute();
}

/** Records the last link that a receiver has. */
export async function movePosition(db: Db, receiver: string, organization: number, seq: number): Promise<void> {
  await db
    .insertInto('audit_positions')
    .values({ receiver, organization_id: organization, seq })
    .onConflict((conflict) => conflict.columns(['receiver', 'organization_id']).doUpdateSet({ seq }))
    .execute();
}

/** The number of links that a receiver does not have. */
export async function countBehind(db: Db, receiver: string): Promise<number> {
  return countRows(
    db
      .selectFrom('audit_entries')
      .leftJoin('audit_positions', (join) =>
        join
          .onRef('audit_positions.organization_id', '=', 'audit_entries.organization_id')
          .on('audit_positions.receiver', '=', receiver),
      )
      .where((eb) => eb('audit_entries.chain_seq', '>', eb.fn.coalesce('audit_positions.seq', eb.lit(0)))),
  );
}
