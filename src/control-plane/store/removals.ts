import type { Db } from './tables.ts';

/** The revision in which the last peer was removed, suspended or expired; null if unknown. */
export async function findLastRemoval(db: Db, network: number): Promise<number | null> {
  const row = await db
    .selectFrom('changes')
    .leftJoin('peers', 'peers.id', 'changes.peer_id')
    .select(({ fn }) => fn.max('changes.revision').as('revision'))
    .where('changes.network_id', '=', network)
    .where('changes.peer_id', 'is not', null)
    .where((eb) =>
      eb.or([eb('peers.id', 'is', null), eb('peers.suspended_at', 'is not', null), eb('peers.expired', '!=', 0)]),
    )
    .executeTakeFirst();
  return row?.revision ?? null;
}

export interface StoredPending {
  readonly id: number;
  readonly name: string;
  readonly acknowledged_revision: number | null;
  readonly last_seen: string | null;
}

/**
 * A report counts as a request: it is stored at once, `last_seen` a moment later. Of peers that
 * never made a request, only those with an identity are hosts with cpn: a host that joined without
 * a daemon still has the map of its enrolment.
 */
export async function listPending(db: Db, network: number, revision: number): Promise<StoredPending[]> {
  return db
    .selectFrom('peers')
    .leftJoin('peer_health', 'peer_health.peer_id', 'peers.id')
    .select(['peers.id', 'peers.name', 'acknowledged_revision'])
    .select(({ fn }) => fn.coalesce('last_seen', 'reported_at').as('last_seen'))
    .where('peers.network_id', '=', network)
    .where('suspended_at', 'is', null)
    .where('expired', '=', 0)
    .where(({ eb, fn, exists, not, selectFrom }) => {
      const changes = selectFrom('changes').select('changes.revision').whereRef('changes.peer_id', '=', 'peers.id');
      // Without a record, its enrolment is older than all recorded changes.
      const isOlder = eb.or([exists(changes.where('changes.revision', '<=', revision)), not(exists(changes))]);
      return eb.or([
        eb(fn.coalesce('last_seen', 'reported_at', eb.cast('acknowledged_revision', 'text')), 'is not', null),
        eb.and([eb('identity_key', 'is not', null), isOlder]),
      ]);
    })
    .where((eb) => eb.or([eb('acknowledged_revision', 'is', null), eb('acknowledged_revision', '<', revision)]))
    .orderBy('peers.id')
    .execute();
}

/** Records a revision that a peer has applied, unless a later one is stored. */
export async function saveAcknowledged(db: Db, peer: number, revision: number): Promise<void> {
  await db
    .insertInto('peer_health')
    .columns(['peer_id', 'network_id', 'follows_relay', 'enforces_rules', 'acknowledged_revision'])
    .expression((eb) =>
      eb
        .selectFrom('peers')
        .select(['id', 'network_id', 'follows_relay', 'enforces_rules'])
        .select(eb.cast<number>(eb.val(revision), 'integer').as('acknowledged_revision'))
        .where('id', '=', peer),
    )
    .onConflict((conflict) =>
      conflict
        .column('peer_id')
        .doUpdateSet({ acknowledged_revision: revision })
        .where((eb) =>
          eb.or([
            eb('peer_health.acknowledged_revision', 'is', null),
            eb('peer_health.acknowledged_revision', '<', revision),
          ]),
        ),
    )
    .execute();
}
