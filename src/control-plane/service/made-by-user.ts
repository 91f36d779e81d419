import type { EnrollmentKeyOfNetwork } from '../../contract/enrollment-key.ts';
import type { User } from '../../contract/user.ts';
import { listKeysMadeBy, listUsersMadeBy, revokeKeysMadeBy } from '../store/made-by-user.ts';
import type { Db } from '../store/tables.ts';

/** What outlives the credentials of a user that made it. */
export interface MadeByUser {
  readonly users_made: User[];
  readonly keys_made: EnrollmentKeyOfNetwork[];
}

/** What a user made, by the audit: a stolen credential of this user may have made it. */
export async function listMadeBy(
  db: Db,
  who: { readonly organizationId: number; readonly userId: number },
  now: Date,
): Promise<MadeByUser> {
  return {
    users_made: await listUsersMadeBy(db, who),
    keys_made: await listKeysMadeBy(db, who, now.toISOString()),
  };
}

/** Revokes the enrolment keys that a user made and that hosts can use, by the audit; returns them. */
export async function revokeMadeBy(
  db: Db,
  who: { readonly organizationId: number; readonly userId: number },
  now: Date,
): Promise<EnrollmentKeyOfNetwork[]> {
  const keys = await listKeysMadeBy(db, who, now.toISOString());
  if (keys.length > 0) await revokeKeysMadeBy(db, who, now.toISOString());
  return keys;
}

/** Keys as the audit names them. */
export function briefly(keys: readonly EnrollmentKeyOfNetwork[]): object[] {
  return keys.map(({ id, name }) => ({ id, name }));
}
