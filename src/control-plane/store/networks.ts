import type { Selectable } from 'kysely';
import type { Address, Prefix } from '../../core/net/cidr.ts';
import { NotFound } from '../errors.ts';
import { insertChange, type Revision } from './changes.ts';
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
  /** Stays with the network through all of its revisions; null in one that an earlier version made. */
  readonly lastingNonce: string | null;
}

export type NetworkFields = Partial<Pick<StoredNetwork, 'name' | 'description' | 'routes' | 'map_max_age_seconds'>>;

export async function listNetworks(db: Db, organizationId: number, slice: Slice): Promise<StoredPage<StoredNetwork>> {
  const list = db.selectFrom('networks').selectAll().where('organization_id', '=', organizationId);
  return mapPage(await readPage(db, list, slice), toNetwork);
}

export async function findNetwork(db: Db, organizationId: number, id: number): Promise<StoredNetwork | undefined> {
  const row = await ofOrganization(db, organizationId, id).executeTakeFirst();
  return row && toNetwork(row);
}

/** Finds a network. Until the transaction ends, all others who hold, change or remove the same network wait. */
export async function lockNetwork(db: Db, organizationId: number, id: number): Promise<StoredNetwork | undefined> {
  const row = await ofOrganization(db, organizationId, id)
    .$if(locksRows(db), (query) => query.forNoKeyUpdate())
    .executeTakeFirst();
  return row && toNetwork(row);
}

function ofOrganization(db: Db, organizationId: number, id: number) {
  return db.selectFrom('networks').selectAll().where('id', '=', id).where('organization_id', '=', organizationId);
}

/** Like {@link lockNetwork}, whosever network it is; gives whose. */
export async function lockOrganizationOf(db: Db, id: number): Promise<number | undefined> {
  const row = await db
    .selectFrom('networks')
    .select('organization_id')
    .where('id', '=', id)
    .$if(locksRows(db), (query) => query.forNoKeyUpdate())
    .executeTakeFirst();
  return row?.organization_id;
}

/** A network, whosever it is; refuses where it is no more. */
export async function readNetwork(db: Db, id: number): Promise<StoredNetwork> {
  const query = db.selectFrom('networks').selectAll().where('id', '=', id);
  return toNetwork(await query.executeTakeFirstOrThrow(() => new NotFound('network')));
}

/** Whose network it is. */
export async function readOrganizationOf(db: Db, id: number): Promise<number> {
  const row = await db.selectFrom('networks').select('organization_id').where('id', '=', id).executeTakeFirstOrThrow();
  return row.organization_id;
}

/** Adds a network, at revision 1 with this nonce, which is its lasting one too, and without peers. */
export async function insertNetwork(
  db: Db,
  organizationId: number,
  network: Pick<StoredNetwork, 'name' | 'description' | 'range' | 'routes'>,
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
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  await insertChange(db, row.id, { revision: 1, nonce, peer: null });
  return toNetwork(row);
}

/**
 * Counts the revision up, gives it this nonce, sets the fields given, and gives the new revision; undefined when there is no such network. In a
 * transaction this comes before every change in a network: it makes all others who change the same network wait.
 */
export async function reviseNetwork(
  db: Db,
  id: number,
  nonce: string,
  { routes, ...fields }: NetworkFields = {},
): Promise<number | undefined> {
  const row = await db
    .updateTable('networks')
    .set((eb) => ({
      revision: eb('revision', '+', 1),
      nonce,
      lasting_nonce: eb.fn.coalesce('lasting_nonce', eb.val(nonce)),
      ...fields,
      ...(routes && { routes: JSON.stringify(routes) }),
    }))
    .where('id', '=', id)
    .returning('revision')
    .executeTakeFirst();
  return row?.revision;
}

/** Removes a network with its keys and peers. */
export async function deleteNetwork(db: Db, organizationId: number, id: number): Promise<void> {
  await db.deleteFrom('networks').where('id', '=', id).where('organization_id', '=', organizationId).execute();
}

/** How many addresses were given out, and which came back first of those that are free again. */
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

/** Records that an address came back. */
export async function returnAddress(db: Db, id: number, address: string): Promise<void> {
  await db.insertInto('returned_addresses').values({ network_id: id, address }).execute();
}

/** Records that an address which had come back was given out again. */
export async function reuseAddress(db: Db, id: number, address: string): Promise<void> {
  await db.deleteFrom('returned_addresses').where('network_id', '=', id).where('address', '=', address).execute();
}

function toNetwork(row: Selectable<Tables['networks']>): StoredNetwork {
  return {
    id: row.id,
    name: row.name,
    description: row.description,
    range: row.private_cidr as Prefix,
    routes: JSON.parse(row.routes),
    revision: row.revision,
    nonce: row.nonce,
    map_max_age_seconds: row.map_max_age_seconds,
    lastingNonce: row.lasting_nonce,
  };
}
