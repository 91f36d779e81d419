import type { Selectable } from 'kysely';
import type { Db, Tables } from '../tables.ts';
import { peerColumns, type StoredPeer } from './peers.ts';

/** The ids of the networks in which a user has own devices, in the order in which to lock them. */
export async function listNetworksOfUser(
  db: Db,
  { organizationId, userId }: { readonly organizationId: number; readonly userId: number },
): Promise<number[]> {
  const rows = await db
    .selectFrom('peers')
    .innerJoin('networks', 'networks.id', 'peers.network_id')
    .select('networks.id')
    .distinct()
    .where('peers.user_id', '=', userId)
    .where('networks.organization_id', '=', organizationId)
    .orderBy('networks.id')
    .execute();
  return rows.map(({ id }) => id);
}

/** The own devices of a user in a network, or without a user those of all users. */
export async function listOwnDevices(db: Db, networkId: number, userId?: number): Promise<StoredPeer[]> {
  return db
    .selectFrom('peers')
    .select(peerColumns)
    .where('network_id', '=', networkId)
    .where('user_id', userId === undefined ? 'is not' : '=', userId ?? null)
    .orderBy('id')
    .execute();
}

/** Returns the network of a user's own device; undefined if the user has no such device. */
export async function findNetworkOfDevice(db: Db, userId: number, id: number): Promise<number | undefined> {
  const row = await db
    .selectFrom('peers')
    .select('network_id')
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return row?.network_id;
}

type OwnDevice = Pick<
  StoredPeer,
  'id' | 'name' | 'address' | 'created_at' | 'suspended_at' | 'expires_at' | 'reauth_hours' | 'awaiting_approval'
> & {
  readonly network_id: number;
  readonly network_name: Selectable<Tables['networks']>['name'];
};

/** All own devices of a user, of every network. */
export async function listDevicesOf(db: Db, userId: number): Promise<OwnDevice[]> {
  return db
    .selectFrom('peers')
    .innerJoin('networks', 'networks.id', 'peers.network_id')
    .select(['peers.id', 'peers.name', 'peers.address', 'peers.created_at', 'peers.suspended_at', 'peers.expires_at'])
    .select([
      'peers.reauth_hours',
      'peers.awaiting_approval',
      'networks.id as network_id',
      'networks.name as network_name',
    ])
    .where('peers.user_id', '=', userId)
    .orderBy('peers.id')
    .execute();
}
