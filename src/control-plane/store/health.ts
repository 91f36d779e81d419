import { type ExpressionBuilder, type Selectable, sql } from 'kysely';
import type { Instances } from '../../core/health/verdict/instances.ts';
import type { Revision } from './changes.ts';
import type { Db, Tables } from './tables.ts';

/** Increments the revision of a network's health. Concurrent transactions that do so wait. */
export async function reviseHealth(db: Db, network: number, nonce: string): Promise<void> {
  await db
    .insertInto('network_health')
    .values({ network_id: network, revision: 1, nonce, routes: '{}' })
    .onConflict((conflict) =>
      conflict.column('network_id').doUpdateSet((eb) => ({ revision: eb('network_health.revision', '+', 1), nonce })),
    )
    .execute();
}

const noHealth = { revision: 0, nonce: 'none', routes: '{}' };

/** Returns the revision of a network's health, and the state of its routes in the last events. */
export async function readNetworkHealth(db: Db, network: number): Promise<Revision & { readonly routes: string }> {
  const query = db.selectFrom('network_health').select(['revision', 'nonce', 'routes']);
  return (await query.where('network_id', '=', network).executeTakeFirst()) ?? noHealth;
}

export type StoredHealth = Selectable<Tables['peer_health']>;

export async function listPeerHealth(db: Db, network: number): Promise<StoredHealth[]> {
  return db.selectFrom('peer_health').selectAll().where('network_id', '=', network).execute();
}

export async function findPeerHealth(db: Db, peer: number): Promise<StoredHealth | undefined> {
  return db.selectFrom('peer_health').selectAll().where('peer_id', '=', peer).executeTakeFirst();
}

/**
 * Lists the peers whose last event is online, and that made no request since their connection was
 * lost.
 */
export async function listLost(
  db: Db,
  network: number,
): Promise<readonly { readonly peer_id: number; readonly lost_at: string }[]> {
  const rows = await db
    .selectFrom('peer_health')
    .select(['peer_id', 'lost_at'])
    .where('network_id', '=', network)
    .where('announced', '=', 'online')
    .where(isLost)
    .execute();
  return rows.flatMap(({ peer_id, lost_at }) => (lost_at === null ? [] : [{ peer_id, lost_at }]));
}

/** True of a peer without a stored request since its connection was lost. */
export function isLost(eb: ExpressionBuilder<Tables, 'peer_health'>) {
  return eb.and([
    eb('lost_at', 'is not', null),
    eb.or([eb('last_seen', 'is', null), eb('last_seen', '<=', eb.ref('lost_at'))]),
  ]);
}

/** Returns the stored starts of the peers' daemons, by peer id. */
export async function listInstances(db: Db, peers: readonly number[]): Promise<ReadonlyMap<number, Instances>> {
  const rows = await db
    .selectFrom('peer_health')
    .select(['peer_id', 'instances'])
    .where('peer_id', 'in', peers)
    .where('instances', 'is not', null)
    .execute();
  return new Map(rows.map(({ peer_id, instances }) => [peer_id, JSON.parse(instances ?? 'null') as Instances]));
}

/**
 * Does nothing for a removed peer, or with `unlessOffline` for a peer last announced offline. The
 * first row of a peer has what it stated at enrolment.
 */
export async function savePeerHealth(
  db: Db,
  peer: number,
  fields: Partial<Omit<StoredHealth, 'peer_id' | 'network_id'>>,
  { unlessOffline = false }: { readonly unlessOffline?: boolean } = {},
): Promise<void> {
  const names = Object.keys(fields) as (keyof typeof fields)[];
  await db
    .insertInto('peer_health')
    .columns(['peer_id', 'network_id', 'follows_relay', 'enforces_rules', ...names])
    .expression((eb) =>
      eb
        .selectFrom('peers')
        .select([
          'id',
          'network_id',
          'follows_relay',
          'enforces_rules',
          ...names.map((name) => sql<string | null>`${fields[name] ?? null}`.as(name)),
        ])
        .where('id', '=', peer),
    )
    .onConflict((conflict) => {
      const update = conflict.column('peer_id').doUpdateSet(fields);
      return unlessOffline ? update.where('peer_health.announced', 'is distinct from', 'offline') : update;
    })
    .execute();
}

/**
 * Deletes what is older than `before`. For null, deletes everything except `last_seen` and the
 * reports of online peers.
 */
export async function prunePresence(db: Db, before: string | null): Promise<void> {
  const facts = { version: null, platform: null, address: null, instances: null };
  const [presence, reports] = [
    { last_seen: null, ...(before !== null && facts) },
    { report: null, reported_at: null },
  ];
  const isOffline = (eb: ExpressionBuilder<Tables, 'peer_health'>) =>
    eb.or([eb('announced', 'is', null), eb('announced', '=', 'offline')]);
  await db
    .updateTable('peer_health')
    .set(presence)
    .where((eb) => (before === null ? isOffline(eb) : eb('last_seen', '<', before)))
    .execute();
  await db
    .updateTable('peer_health')
    .set(reports)
    .where((eb) => (before === null ? isOffline(eb) : eb('reported_at', '<', before)))
    .execute();
  if (before === null) await db.updateTable('peer_health').set(facts).where('address', 'is not', null).execute();
}

/**
 * Lists the networks with a peer whose last event contradicts its requests since `since`, or its
 * lost connection. Requests of suspended and expired peers do not count.
 */
export async function listNetworksToJudge(db: Db, since: string): Promise<number[]> {
  const rows = await db
    .selectFrom('peer_health')
    .innerJoin('peers', 'peers.id', 'peer_health.peer_id')
    .select('peer_health.network_id')
    .distinct()
    .where((eb) =>
      eb.or([
        eb.and([eb('announced', '=', 'online'), eb.or([eb('last_seen', '<', since), isLost(eb)])]),
        eb.and([eb('announced', '=', 'offline'), eb('last_seen', '>=', since), eb.not(isLost(eb))]),
        eb.and([eb('announced', 'is', null), eb('last_seen', '>=', since)]),
      ]),
    )
    .where('suspended_at', 'is', null)
    .where('expired', '=', 0)
    .execute();
  return rows.map(({ network_id }) => network_id);
}

/** Stores the routes' state in the last events. The network must have a row for its health. */
export async function saveAnnouncedRoutes(db: Db, network: number, routes: string): Promise<void> {
  await db.updateTable('network_health').set({ routes }).where('network_id', '=', network).execute();
}

/** Counts the peers by the state in their last event. */
export async function countAnnounced(db: Db): Promise<ReadonlyMap<StoredHealth['announced'], number>> {
  const counted = db.selectFrom('peer_health').select(({ fn }) => ['announced', fn.countAll().as('count')]);
  const rows = await counted.where('announced', 'is not', null).groupBy('announced').execute();
  return new Map(rows.map(({ announced, count }) => [announced, Number(count)]));
}
