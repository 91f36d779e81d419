import type { Db } from './tables.ts';

/** Increments the revision of a network's health. Until the transaction ends, others that do so wait. */
export async function reviseHealth(db: Db, network: number, nonce: string): Promise<void> {
  await db
    .insertInto('network_health')
    .values({ network_id: network, revision: 1, nonce, routes: '{}' })
    .onConflict((conflict) =>
      conflict.column('network_id').doUpdateSet((eb) => ({ revision: eb('network_health.revision', '+', 1), nonce })),
    )
    .execute();
}
