import type { Role } from '../../../contract/auth.ts';
import type { ChangedUser } from '../../../contract/user.ts';
import * as store from '../../store/accounts/users.ts';
import type { Db } from '../../store/tables.ts';
import { type Author, record } from '../audit.ts';
import type { Context } from '../context.ts';
import { briefly, revokeMadeBy } from './made-by-user.ts';

interface RoleChange {
  readonly user: store.StoredUser;
  readonly role: Role;
  /** True if the enrolment keys of a new viewer stay valid. */
  readonly keepsKeys: boolean;
}

/**
 * Sets the role of a user and records it. Revokes a new viewer's enrolment keys. The caller has
 * locked the organization and the user.
 */
export async function changeRole(
  context: Context,
  transaction: Db,
  author: Author & { readonly organizationId: number },
  { user, role, keepsKeys }: RoleChange,
): Promise<ChangedUser> {
  const { id, email, role: role_before } = user;
  const changed = await store.setRole(transaction, id, role);
  const made = { organizationId: author.organizationId, userId: id };
  const losesKeys = role === 'viewer' && !keepsKeys;
  const revoked = losesKeys ? await revokeMadeBy(transaction, made, context.now()) : null;
  await record(transaction, author, {
    action: 'user.update',
    target: { kind: 'user', id, name: email },
    details: { role, role_before, ...(revoked && { keys_revoked: briefly(revoked) }) },
  });
  return { ...changed, ...(revoked && { keys_revoked: revoked }) };
}

/** True if the organization has one owner, and this is its role. */
export async function isLastOwner(db: Db, organizationId: number, role: Role): Promise<boolean> {
  return role === 'owner' && (await store.listOwners(db, organizationId)).length === 1;
}
