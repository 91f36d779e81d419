import type { EnrollmentKeyOfNetwork } from '../../../contract/enrollment-key.ts';
import type { User } from '../../../contract/user.ts';
import { isWithinLimit } from '../../domain/network-limit.ts';
import { type KeysOf, listKeysMadeBy, listUsersMadeBy, revokeKeysMadeBy } from '../../store/accounts/made-by-user.ts';
import type { Rights, StoredUser } from '../../store/accounts/users.ts';
import type { Db } from '../../store/tables.ts';

/** The users and keys that a user created and that outlive the user's credentials. */
export interface MadeByUser {
  readonly users_made: User[];
  readonly keys_made: EnrollmentKeyOfNetwork[];
}

/** Lists the users and keys that a user, or a thief of its credentials, created (audit log). */
export async function listMadeBy(db: Db, who: KeysOf, now: Date): Promise<MadeByUser> {
  return {
    users_made: await listUsersMadeBy(db, who),
    keys_made: await listKeysMadeBy(db, who, now.toISOString()),
  };
}

/** Revokes the usable enrolment keys that a user created, from the audit log. Returns them. */
export async function revokeMadeBy(db: Db, who: KeysOf, now: Date): Promise<EnrollmentKeyOfNetwork[]> {
  const keys = await listKeysMadeBy(db, who, now.toISOString());
  if (keys.length > 0) await revokeKeysMadeBy(db, who, now.toISOString());
  return keys;
}

/** Revokes the keys that a user could not create any more. Null if it lost no right to do so. */
export async function revokeLost(
  db: Db,
  { organizationId }: { readonly organizationId: number },
  before: Rights,
  { id: userId, role, networks }: StoredUser,
  now: Date,
): Promise<EnrollmentKeyOfNetwork[] | null> {
  const who = { organizationId, userId };
  if (role === 'viewer' && before.role !== 'viewer') return revokeMadeBy(db, who, now);
  return isWithinLimit(before.networks, networks) ? null : revokeMadeBy(db, { ...who, beyond: networks }, now);
}

/** Keys in the form of the audit log. */
export function briefly(keys: readonly EnrollmentKeyOfNetwork[]): object[] {
  return keys.map(({ id, name }) => ({ id, name }));
}
