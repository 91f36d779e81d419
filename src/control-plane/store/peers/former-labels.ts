import { mostLabels } from '../../../core/names/hosts-label.ts';
import type { Db } from '../tables.ts';
import type { StoredPeer } from './peers.ts';

/**
 * Reserves the former label of a peer that has another one now. Hosts may still resolve it to this
 * peer. The oldest former label above the limit is released.
 */
export async function keepFormerLabel(
  db: Db,
  before: Pick<StoredPeer, 'id' | 'network_id' | 'label'>,
  after: Pick<StoredPeer, 'label'>,
): Promise<void> {
  const { id, network_id } = before;
  const [former, current] = [before, after].map(({ label }) => label ?? `peer-${id}`) as [string, string];
  if (former === current) return;
  await db.deleteFrom('former_labels').where('peer_id', '=', id).where('label', '=', current).execute();
  // An instance of an earlier version may have given the peer a label that is kept for another one.
  await db
    .insertInto('former_labels')
    .values({ network_id, peer_id: id, label: former })
    .onConflict((conflict) => conflict.columns(['network_id', 'label']).doNothing())
    .execute();
  await db
    .deleteFrom('former_labels')
    .where('peer_id', '=', id)
    .where('id', 'not in', (query) =>
      query.selectFrom('former_labels').select('id').where('peer_id', '=', id).orderBy('id', 'desc').limit(mostLabels),
    )
    .execute();
}
