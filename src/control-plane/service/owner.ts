import * as z from 'zod';
import { NewPassword } from '../../contract/user.ts';
import { WrongUsage } from '../../core/errors.ts';
import type { Secret } from '../../core/secret.ts';
import { hashPassword } from '../passwords.ts';
import { holdTable } from '../store/locks.ts';
import { transact } from '../store/transact.ts';
import { insertOrganization, insertUser, isAnyUser } from '../store/users.ts';
import { record } from './audit.ts';
import type { Context } from './context.ts';

export interface Owner {
  readonly email: string;
  readonly password: Secret;
}

/** Makes the first user, and its organization, when there is no user yet; true when it did. There is no default password. */
export async function makeFirstOwner(
  { db, now, readTime, random, passwordCost }: Context,
  owner: Owner | null,
): Promise<boolean> {
  if (await isAnyUser(db)) return false;
  if (!owner) {
    throw new WrongUsage(
      'the control plane has no user yet; name its first owner with --owner-email and --owner-password-file',
    );
  }
  if (!z.email().safeParse(owner.email).success) throw new WrongUsage('--owner-email is not an e-mail address');
  const password = NewPassword.safeParse(owner.password.reveal());
  if (!password.success) {
    throw new WrongUsage(`the password in the file of --owner-password-file ${password.error.issues[0]?.message}`);
  }
  const passwordHash = await hashPassword(owner.password, random, passwordCost);
  return transact(db, async (transaction) => {
    // Two processes that start at once are not to make one each.
    await holdTable(transaction, 'users');
    if (await isAnyUser(transaction)) return false;
    const organizationId = await insertOrganization(transaction, 'default');
    const email = owner.email.toLowerCase();
    const id = await insertUser(transaction, {
      organization_id: organizationId,
      email,
      password_hash: passwordHash,
      role: 'owner',
      created_at: now().toISOString(),
    });
    const system = { kind: 'system', id: null, name: null } as const;
    await record(
      transaction,
      { organizationId, actor: system, address: null, readTime },
      { action: 'user.create', target: { kind: 'user', id, name: email }, details: { role: 'owner' } },
    );
    return true;
  });
}
