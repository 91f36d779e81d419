import { mostLabels } from '../../../core/names/hosts-label.ts';
import { countRows } from '../database.ts';
import type { Db } from '../tables.ts';
import type { StoredPeer } from './peers.ts';

/**
 * Reserves the former label of a peer that has another one now. Hosts may still resolve it to this
 * peer. Like hosts, it keeps the first labels up to a limit, and no later one.
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
  if ((await countRows(db.selectFrom('former_labels').where('peer_id', '=', id))) >= mostLabels) return;
  // An instance of an earlier version may have given the peer a label that is kept for another one.
  await db
    .insertInto('former_labels')
    .values({ network_id, peer_id: id, label: former })
    .onConflict((conflict) => conflict.columns(['network_id', 'label']).doNothing())
    .execute();
}

/**
 * Finds the peer other than `except` that has this label, or had it before. A peer without a label
 * matches `peer-ID`.
 */
export async function findLabelHolder(
  db: Db,
  networkId: number,
  label: string,
  except = 0,
): Promise<{ id: number; name: string; isFormer: boolean } | undefined> {
  const current = await findCurrentHolder(db, networkId, label, except);
  if (current) return { ...current, isFormer: false };
  const former = await db
    .selectFrom('former_labels')
    .innerJoin('peers', 'peers.id', 'former_labels.peer_id')
    .select(['peers.id', 'peers.name'])
    .where('former_labels.network_id', '=', networkId)
    .where('former_labels.label', '=', label)
    .where('peers.id', '!=', except)
    .executeTakeFirst();
  return former && { ...former, isFormer: true };
}

async function findCurrentHolder(
  db: Db,
  networkId: number,
  label: string,
  except: number,
): Promise<{ id: number; name: string } | undefined> {
  const [, id] = /^peer-([1-9][0-9]{0,14})$/.exec(label) ?? [];
  const others = db
    .selectFrom('peers')
    .select(['id', 'name'])
    .where('network_id', '=', networkId)
    .where('id', '!=', except);
  const named = await others.where('label', '=', label).executeTakeFirst();
  if (named || id === undefined) return named;
  return others.where('id', '=', Number(id)).where('label', 'is', null).executeTakeFirst();
}

/** Counts the labels of a network, former ones too, that are this one with a suffix. */
export async function countSuffixed(db: Db, networkId: number, label: string): Promise<number> {
  const pattern = `${label}-%`;
  const current = db.selectFrom('peers').where('network_id', '=', networkId).where('label', 'like', pattern);
  const former = db.selectFrom('former_labels').where('network_id', '=', networkId).where('label', 'like', pattern);
  return (await countRows(current)) + (await countRows(former));
}
