import type { Role } from '../../contract/auth.ts';
import type { User } from '../../contract/user.ts';
import type { Secret } from '../../core/secret.ts';
import { administrators, checkAccess, type UserCaller } from '../caller.ts';
import { Forbidden, InvalidRequest, NotFound, Unauthenticated } from '../errors.ts';
import { hashPassword } from '../passwords.ts';
import type { Page, Slice } from '../store/page.ts';
import type { Db } from '../store/tables.ts';
import { transact } from '../store/transact.ts';
import * as store from '../store/users.ts';
import { authorOf, record } from './audit.ts';
import type { Context } from './context.ts';

/** The users of the caller's organization. */
export async function listUsers({ db }: Context, caller: UserCaller, slice: Slice): Promise<Page<User>> {
  return store.listUsers(db, caller.organizationId, slice);
}

/** Makes a user in the caller's organization. Only an owner may make an owner. */
export async function createUser(
  context: Context,
  caller: UserCaller,
  { email, password, role }: { email: string; password: Secret; role: Role },
): Promise<User> {
  checkRank(caller.role, role, 'make');
  const passwordHash = await hashPassword(password, context.random, context.passwordCost);
  return transact(context.db, async (transaction) => {
    checkRank(await holdRole(transaction, caller), role, 'make');
    const user = await store.insertUnknownUser(transaction, {
      organization_id: caller.organizationId,
      email: email.toLowerCase(),
      password_hash: passwordHash,
      role,
      created_at: context.now().toISOString(),
    });
    if (!user) throw new InvalidRequest({ email: ['is in use already'] });
    const target = { kind: 'user', id: user.id, name: user.email } as const;
    await record(transaction, authorOf(context, caller), { action: 'user.create', target, details: { role } });
    return user;
  });
}

/**
 * Removes a user; its sessions and tokens are void from then on. Only an owner may remove an owner, and nobody removes
 * themself: so an organization always keeps an owner.
 */
export async function deleteUser(context: Context, caller: UserCaller, id: number): Promise<void> {
  await transact(context.db, async (transaction) => {
    const role = await holdRole(transaction, caller);
    const user = await store.holdUser(transaction, caller.organizationId, id);
    if (!user) throw new NotFound('user');
    if (id === caller.userId) throw new Forbidden('nobody may remove themself; ask another owner or admin');
    checkRank(role, user.role, 'remove');
    await store.deleteUser(transaction, caller.organizationId, id);
    const target = { kind: 'user', id, name: user.email } as const;
    await record(transaction, authorOf(context, caller), {
      action: 'user.delete',
      target,
      details: { role: user.role },
    });
  });
}

/**
 * The caller's role as of now. Changes to the users of one organization come one after another from here on: of two who
 * remove each other at the same time one is no more, and neither waits for the other.
 */
async function holdRole(transaction: Db, caller: UserCaller): Promise<Role> {
  await store.holdOrganization(transaction, caller.organizationId);
  const user = await store.holdUser(transaction, caller.organizationId, caller.userId);
  if (!user) throw new Unauthenticated('the user is no more');
  checkAccess({ ...caller, role: user.role }, administrators);
  return user.role;
}

function checkRank(caller: Role, user: Role, deed: 'make' | 'remove'): void {
  if (user === 'owner' && caller !== 'owner') throw new Forbidden(`only an owner may ${deed} an owner`);
}
