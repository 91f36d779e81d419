import * as z from 'zod';
import { WrongUsage } from '../../core/errors.ts';
import type { Secret } from '../../core/secret.ts';
import { hashPassword } from '../passwords.ts';
import { insertOrganization, insertUser, isAnyUser } from '../store/users.ts';
import type { Context } from './context.ts';

export interface Owner {
  readonly email: string;
  readonly password: Secret;
}

/** Makes the first user, and its organization, when there is no user yet; true when it did. There is no default password. */
export async function makeFirstOwner({ db, now, random }: Context, owner: Owner | null): Promise<boolean> {
  if (await isAnyUser(db)) return false;
  if (!owner) {
    throw new WrongUsage(
      'the control plane has no user yet; name its first owner with --owner-email and --owner-password-file',
    );
  }
  if (!z.email().safeParse(owner.email).success) throw new WrongUsage('--owner-email is not an e-mail address');
  if (owner.password.reveal() === '') throw new WrongUsage('the file of --owner-password-file is empty');
  const passwordHash = await hashPassword(owner.password, random);
  return db.transaction().execute(async (transaction) => {
    if (await isAnyUser(transaction)) return false;
    await insertUser(transaction, {
      organization_id: await insertOrganization(transaction, 'default'),
      email: owner.email.toLowerCase(),
      password_hash: passwordHash,
      role: 'owner',
      created_at: now().toISOString(),
    });
    return true;
  });
}
