import { Role } from '../../../contract/auth.ts';
import type { ChangedUser } from '../../../contract/user.ts';
import * as store from '../../store/accounts/users.ts';
import type { Db } from '../../store/tables.ts';
import { record } from '../audit.ts';
import type { Context } from '../context.ts';
import { losesDevices, type Suspending, suspendDevicesOf } from '../devices-of-user.ts';
import { briefly, revokeMadeBy } from './made-by-user.ts';

/** The transaction of a change that may suspend own devices, and who makes it. */
export type AccountChange = Pick<Suspending, 'transaction' | 'revise' | 'append' | 'author'>;

interface RoleChange {
  readonly user: store.StoredUser;
  readonly organizationId: number;
  readonly role: Role;
  /** True if the enrolment keys of a new viewer stay valid. */
  readonly keepsKeys: boolean;
}

/**
 * Sets the role of a user and records it. Revokes a new viewer's enrolment keys, and suspends the
 * own devices that the role may not have. The caller has locked the networks of these devices, the
 * organization and the user.
 */
export async function changeRole(
  context: Context,
  { transaction, revise, append, author }: AccountChange,
  { user, organizationId, role, keepsKeys }: RoleChange,
): Promise<ChangedUser> {
  const { id, email, role: role_before } = user;
  const which = { organizationId, userId: id };
  const changed = await store.setRole(transaction, id, role);
  const losesKeys = role === 'viewer' && !keepsKeys;
  const revoked = losesKeys ? await revokeMadeBy(transaction, which, context.now()) : null;
  const devices = await suspendDevicesOf(
    { transaction, revise, append, author, now: context.now(), because: 'role changed' },
    { ...which, email },
    losesDevices(role, rankOf(role) > rankOf(role_before)),
  );
  await record(transaction, author, {
    action: 'user.update',
    target: { kind: 'user', id, name: email },
    details: {
      ...{ role, role_before },
      ...(revoked && { keys_revoked: briefly(revoked) }),
      ...(devices > 0 && { devices_suspended: devices }),
    },
  });
  return { ...changed, ...(revoked && { keys_revoked: revoked }) };
}

/** True if the organization has one owner, and this is its role. */
export async function isLastOwner(db: Db, organizationId: number, role: Role): Promise<boolean> {
  return role === 'owner' && (await store.listOwners(db, organizationId)).length === 1;
}

/** Higher for a role with more rights. */
export function rankOf(role: Role): number {
  return -Role.options.indexOf(role);
}
