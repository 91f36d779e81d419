import type { Selectable } from 'kysely';
import type { NetworkLimit } from '../../contract/auth.ts';
import type { Approval, RouteDns, SelfEnroll } from '../../contract/network.ts';
import type { Address, Prefix } from '../../core/net/cidr.ts';
import { ofRoutes } from '../domain/route-dns.ts';
import { NotFound } from '../errors.ts';
import { insertChanges, type Revision } from './changes.ts';
import { locksRows } from './database.ts';
import { mapPage, readPage, type Slice, type StoredPage } from './page.ts';
import type { Db, Tables } from './tables.ts';

export interface StoredNetwork extends Revision {
  readonly id: number;
  readonly name: string;
  readonly description: string;
  readonly range: Prefix;
  readonly routes: readonly Prefix[];
  readonly map_max_age_seconds: number | null;
  /** Stays the same through all revisions. Null in a network that an earlier version created. */
  readonly lastingNonce: string | null;
  readonly relay: number | null;
  readonly spread: boolean;
  readonly route_dns: readonly RouteDns[];
  readonly self_enroll: SelfEnroll | null;
  readonly approval: Approval;
}

export type NetworkFields = Partial<
  Pick<
    StoredNetwork,
    'name' | 'description' | 'routes' | 'map_max_age_seconds' | 'spread' | 'route_dns' | 'self_enroll' | 'approval'
  >
>;

export async function listNetworks(
  db: Db,
  organizationId: number,
  limit: NetworkLimit,
  slice: Slice,
): Promise<StoredPage<StoredNetwork>> {
  const list = db
    .selectFrom('networks')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .$if(limit !== null, (query) => query.where('id', 'in', idsOf(limit)));
  return mapPage(await readPage(db, list, slice), toNetwork);
}

/** Returns the names of an organization's networks, by id. */
export async function listNames(db: Db, organizationId: number): Promise<ReadonlyMap<number, string>> {
  const list = db.selectFrom('networks').select(['id', 'name']).where('organization_id', '=', organizationId);
  return new Map((await list.execute()).map(({ id, name }) => [id, name]));
}

/** PostgreSQL has no empty list. No network has the id 0. */
export function idsOf(limit: NetworkLimit): number[] {
  return [0, ...(limit ?? [])];
}

export async function findNetwork(db: Db, organizationId: number, id: number): Promise<StoredNetwork | undefined> {
  const row = await ofOrganization(db, organizationId, id).executeTakeFirst();
  return row && toNetwork(row);
}

/** Finds and locks a network. Other transactions that lock, change or delete it wait. */
export async function lockNetwork(db: Db, organizationId: number, id: number): Promise<StoredNetwork | undefined> {
  const row = await ofOrganization(db, organizationId, id)
    .$if(locksRows(db), (query) => query.forNoKeyUpdate())
    .executeTakeFirst();
  return row && toNetwork(row);
}

function ofOrganization(db: Db, organizationId: number, id: number) {
  return db.selectFrom('networks').selectAll().where('id', '=', id).where('organization_id', '=', organizationId);
}

/** Locks a network of any organization like {@link lockNetwork}. Returns its organization's id. */
export async function lockOrganizationOf(db: Db, id: number): Promise<number | undefined> {
  const row = await db
    .selectFrom('networks')
    .select('organization_id')
    .where('id', '=', id)
    .$if(locksRows(db), (query) => query.forNoKeyUpdate())
    .executeTakeFirst();
  return row?.organization_id;
}

/** Returns a network of any organization. @throws NotFound if it does not exist */
export async function readNetwork(db: Db, id: number): Promise<StoredNetwork> {
  const query = db.selectFrom('networks').selectAll().where('id', '=', id);
  return toNetwork(await query.executeTakeFirstOrThrow(() => new NotFound('network')));
}

export async function readOrganizationOf(db: Db, id: number): Promise<number> {
  const row = await db.selectFrom('networks').select('organization_id').where('id', '=', id).executeTakeFirstOrThrow();
  return row.organization_id;
}

/** Adds a network without peers at revision 1. `nonce` becomes its lasting nonce too. */
export async function insertNetwork(
  db: Db,
  organizationId: number,
  network: Pick<StoredNetwork, 'name' | 'description' | 'range' | 'routes'> &
    Partial<Pick<StoredNetwork, 'spread' | 'route_dns'>>,
  now: string,
  nonce: string,
): Promise<StoredNetwork> {
  const row = await db
    .insertInto('networks')
    .values({
      organization_id: organizationId,
      name: network.name,
      description: network.description,
      private_cidr: network.range,
      routes: JSON.stringify(network.routes),
      revision: 1,
      nonce,
      addresses_given: 0,
      created_at: now,
      lasting_nonce: nonce,
      spread: network.spread ? 1 : 0,
      route_dns: JSON.stringify(network.route_dns ?? []),
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  await insertChanges(db, row.id, { revision: 1, nonce }, [null]);
  return toNetwork(row);
}

/**
 * Comes before every other change in the network: concurrent changes of it wait. Sets the fields
 * and a new nonce, and returns the new revision; undefined if there is no such network.
 */
export async function reviseNetwork(
  db: Db,
  id: number,
  nonce: string,
  { routes, spread, route_dns, self_enroll, approval, ...fields }: NetworkFields = {},
): Promise<number | undefined> {
  const row = await db
    .updateTable('networks')
    .set((eb) => ({
      revision: eb('revision', '+', 1),
      nonce,
      lasting_nonce: eb.fn.coalesce('lasting_nonce', eb.val(nonce)),
      ...fields,
      ...(routes && { routes: JSON.stringify(routes) }),
      ...(spread !== undefined && { spread: spread ? 1 : 0 }),
      ...(route_dns && { route_dns: JSON.stringify(route_dns) }),
      ...(self_enroll !== undefined && { self_enroll: self_enroll && JSON.stringify(self_enroll) }),
      ...(approval && { approval: approval === 'required' ? 1 : 0 }),
    }))
    .where('id', '=', id)
    .returning('revision')
    .executeTakeFirst();
  return row?.revision;
}

/** Comes after {@link reviseNetwork}. */
export async function saveRelay(db: Db, id: number, relay: number | null): Promise<void> {
  await db.updateTable('networks').set({ relay }).where('id', '=', id).execute();
}

/** Deletes a network with its keys and peers. */
export async function deleteNetwork(db: Db, organizationId: number, id: number): Promise<void> {
  await db.deleteFrom('networks').where('id', '=', id).where('organization_id', '=', organizationId).execute();
}

/** Counts the addresses assigned so far. `returned` is the free address released first. */
export async function readAddressUse(db: Db, id: number): Promise<{ given: number; returned: Address | null }> {
  const { given, returned } = await db
    .selectFrom('networks')
    .select(({ selectFrom }) => [
      'addresses_given as given',
      selectFrom('returned_addresses')
        .select('address')
        .where('network_id', '=', id)
        .orderBy('returned_addresses.id')
        .limit(1)
        .as('returned'),
    ])
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  return { given, returned: returned as Address | null };
}

/** Records that an address was assigned for the first time. */
export async function countAddress(db: Db, id: number): Promise<void> {
  await db
    .updateTable('networks')
    .set((eb) => ({ addresses_given: eb('addresses_given', '+', 1) }))
    .where('id', '=', id)
    .execute();
}

export async function returnAddress(db: Db, id: number, address: string): Promise<void> {
  await db.insertInto('returned_addresses').values({ network_id: id, address }).execute();
}

export async function reuseAddress(db: Db, id: number, address: string): Promise<void> {
  await db.deleteFrom('returned_addresses').where('network_id', '=', id).where('address', '=', address).execute();
}

function toNetwork(row: Selectable<Tables['networks']>): StoredNetwork {
  const routes: Prefix[] = JSON.parse(row.routes);
  return {
    id: row.id,
    name: row.name,
    description: row.description,
    range: row.private_cidr as Prefix,
    routes,
    revision: row.revision,
    nonce: row.nonce,
    map_max_age_seconds: row.map_max_age_seconds,
    lastingNonce: row.lasting_nonce,
    relay: row.relay,
    spread: row.spread === 1,
    // An earlier version that shares the database removes routes without their entries.
    route_dns: ofRoutes(JSON.parse(row.route_dns), routes),
    self_enroll: row.self_enroll === null ? null : JSON.parse(row.self_enroll),
    approval: row.approval === 1 ? 'required' : 'off',
  };
}
