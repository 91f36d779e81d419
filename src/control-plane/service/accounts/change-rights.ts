import { Role } from '../../../contract/auth.ts';
import type { ChangedUser } from '../../../contract/user.ts';
import { permits } from '../../domain/network-limit.ts';
import * as store from '../../store/accounts/users.ts';
import type { Db } from '../../store/tables.ts';
import { record } from '../audit.ts';
import type { Context } from '../context.ts';
import { losesDevices, type Suspending, suspendDevicesOf } from '../devices-of-user.ts';
import { briefly, revokeLost } from './made-by-user.ts';
import { isSameLimit, nameLimit } from './network-limits.ts';

/** The transaction of a change that may suspend own devices, and who makes it. */
export type AccountChange = Pick<Suspending, 'transaction' | 'revise' | 'append' | 'author'>;

interface RightsChange extends store.Rights {
  readonly user: store.StoredUser;
  readonly organizationId: number;
  /** True if the enrolment keys that the user could not create any more stay valid. */
  readonly keepsKeys: boolean;
}

/**
 * Sets the role and the limit of a user and records it. Revokes the enrolment keys that the user
 * could not create any more, and suspends the own devices that it may not have. The caller has
 * locked the networks of these devices, the organization and the user.
 */
export async function changeRights(
  context: Context,
  { transaction, revise, append, author }: AccountChange,
  { user, organizationId, role, networks, keepsKeys }: RightsChange,
): Promise<ChangedUser> {
  const { id, email, role: role_before } = user;
  const changed = await store.setRights(transaction, id, { role, networks });
  const revoked = keepsKeys ? null : await revokeLost(transaction, { organizationId }, user, changed, context.now());
  const losesByRole = losesDevices(role, rankOf(role) > rankOf(role_before));
  const isSameRole = role === role_before;
  const devices = await suspendDevicesOf(
    { transaction, revise, append, author, now: context.now(), because: isSameRole ? 'limit changed' : 'role changed' },
    { organizationId, userId: id, email },
    (selfEnroll, network) => !permits(networks, network) || (!isSameRole && losesByRole(selfEnroll)),
  );
  await record(transaction, author, {
    action: 'user.update',
    target: { kind: 'user', id, name: email },
    details: {
      ...(!isSameRole && { role, role_before }),
      ...(!isSameLimit(networks, user.networks) && {
        networks: await nameLimit(transaction, { organizationId }, networks),
        networks_before: await nameLimit(transaction, { organizationId }, user.networks),
      }),
      ...(revoked && { keys_revoked: briefly(revoked) }),
      ...(devices > 0 && { devices_suspended: devices }),
    },
  });
  return { ...changed, networks: networks === null ? null : [...networks], ...(revoked && { keys_revoked: revoked }) };
}

/** True if the organization has one owner, and this is its role. */
export async function isLastOwner(db: Db, organizationId: number, role: Role): Promise<boolean> {
  return role === 'owner' && (await store.listOwners(db, organizationId)).length === 1;
}

/** Higher for a role with more rights. */
export function rankOf(role: Role): number {
  return -Role.options.indexOf(role);
}
