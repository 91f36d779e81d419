import type { NetworkLimit } from '../../../contract/auth.ts';
import type { EnrollmentKeyOfNetwork } from '../../../contract/enrollment-key.ts';
import type { User } from '../../../contract/user.ts';
import { idsOf } from '../networks.ts';
import type { Db } from '../tables.ts';

/** The maximum length of each list. Older entries are left out. */
const mostListed = 1000;

interface Which {
  readonly organizationId: number;
  readonly userId: number;
}

/** Newest first, with users whose role the user changed, as far back as the audit log goes. */
export async function listUsersMadeBy(db: Db, { organizationId, userId }: Which): Promise<User[]> {
  return db
    .selectFrom('users')
    .select(['id', 'email', 'role', 'created_at'])
    .where('organization_id', '=', organizationId)
    .where('id', '<>', userId)
    .where('id', 'in', targetsOf(db, userId, ['user.create', 'user.update']))
    .orderBy('id', 'desc')
    .limit(mostListed)
    .execute();
}

export interface KeysOf extends Which {
  /** Only keys of these networks, or only keys of others. */
  readonly within?: NetworkLimit;
  readonly beyond?: NetworkLimit;
}

/** Lists the keys that are usable at `now`, newest first, as far back as the audit log goes. */
export async function listKeysMadeBy(
  db: Db,
  { organizationId, userId, within = null, beyond = null }: KeysOf,
  now: string,
): Promise<EnrollmentKeyOfNetwork[]> {
  const rows = await db
    .selectFrom('enrollment_keys as keys')
    .innerJoin('networks', 'networks.id', 'keys.network_id')
    .select(['keys.id', 'keys.name', 'keys.uses', 'keys.max_uses', 'keys.expires_at'])
    .select(['networks.id as networkId', 'networks.name as networkName'])
    .where('networks.organization_id', '=', organizationId)
    .where('keys.revoked_at', 'is', null)
    .where('keys.expires_at', '>', now)
    .whereRef('keys.uses', '<', 'keys.max_uses')
    .where('keys.id', 'in', targetsOf(db, userId, ['key.create']))
    .$if(within !== null, (query) => query.where('networks.id', 'in', idsOf(within)))
    .$if(beyond !== null, (query) => query.where('networks.id', 'not in', idsOf(beyond)))
    .orderBy('keys.id', 'desc')
    .limit(mostListed)
    .execute();
  return rows.map(({ networkId, networkName, ...key }) => ({ ...key, network: { id: networkId, name: networkName } }));
}

/** Revokes all keys that match the criteria of {@link listKeysMadeBy}, without its maximum. */
export async function revokeKeysMadeBy(
  db: Db,
  { organizationId, userId, within = null, beyond = null }: KeysOf,
  now: string,
): Promise<void> {
  await db
    .updateTable('enrollment_keys')
    .set({ revoked_at: now })
    .where('network_id', 'in', db.selectFrom('networks').select('id').where('organization_id', '=', organizationId))
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', now)
    .whereRef('uses', '<', 'max_uses')
    .where('id', 'in', targetsOf(db, userId, ['key.create']))
    .$if(within !== null, (query) => query.where('network_id', 'in', idsOf(within)))
    .$if(beyond !== null, (query) => query.where('network_id', 'not in', idsOf(beyond)))
    .execute();
}

function targetsOf(db: Db, userId: number, actions: readonly string[]) {
  return db
    .selectFrom('audit_entries')
    .select((eb) => eb.ref('target_id').$notNull().as('target_id'))
    .where('actor_kind', '=', 'user')
    .where('actor_id', '=', userId)
    .where('action', 'in', actions)
    .where('target_id', 'is not', null);
}
