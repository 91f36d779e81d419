import type { EnrollmentKeyOfNetwork } from '../../contract/enrollment-key.ts';
import type { Db } from './tables.ts';
import type { StoredUser } from './users.ts';

/** What one of these lists has at most: the newest. */
const mostListed = 1000;

interface Which {
  readonly organizationId: number;
  readonly userId: number;
}

/** The users that a user made, or whose role it changed, newest first; as far back as the audit goes. */
export async function listUsersMadeBy(db: Db, { organizationId, userId }: Which): Promise<StoredUser[]> {
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

/** The enrolment keys that a user made and that hosts can use at that instant, newest first; as far back as the audit goes. */
export async function listKeysMadeBy(
  db: Db,
  { organizationId, userId }: Which,
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
    .orderBy('keys.id', 'desc')
    .limit(mostListed)
    .execute();
  return rows.map(({ networkId, networkName, ...key }) => ({ ...key, network: { id: networkId, name: networkName } }));
}

/** Makes the keys useless that {@link listKeysMadeBy} lists, and all others of the kind. */
export async function revokeKeysMadeBy(db: Db, { organizationId, userId }: Which, now: string): Promise<void> {
  await db
    .updateTable('enrollment_keys')
    .set({ revoked_at: now })
    .where('network_id', 'in', db.selectFrom('networks').select('id').where('organization_id', '=', organizationId))
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', now)
    .whereRef('uses', '<', 'max_uses')
    .where('id', 'in', targetsOf(db, userId, ['key.create']))
    .execute();
}

/** The ids of what a user did one of these actions to. */
function targetsOf(db: Db, userId: number, actions: readonly string[]) {
  return db
    .selectFrom('audit_entries')
    .select((eb) => eb.ref('target_id').$notNull().as('target_id'))
    .where('actor_kind', '=', 'user')
    .where('actor_id', '=', userId)
    .where('action', 'in', actions)
    .where('target_id', 'is not', null);
}
