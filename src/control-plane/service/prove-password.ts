import type { Secret } from '../../core/crypto/secret.ts';
import type { UserCaller } from '../domain/caller.ts';
import { verifyPassword } from '../domain/passwords.ts';
import { Forbidden } from '../errors.ts';
import { transact } from '../store/transact.ts';
import { findUserByEmail } from '../store/users.ts';
import { authorOf, record } from './audit.ts';
import type { Context } from './context.ts';

/**
 * Checks the password of the caller, and returns the hash that it matches. A transaction that relies on it must lock the user with this
 * hash, because the password may change meanwhile. A wrong password is in the audit.
 *
 * @throws Forbidden for a wrong password
 */
export async function provePassword(context: Context, caller: UserCaller, password: Secret): Promise<string> {
  const { db, passwordCost } = context;
  const { email, userId } = caller;
  const hash = (await findUserByEmail(db, email))?.password_hash ?? null;
  if (hash !== null && (await verifyPassword(password, hash, passwordCost, { user: userId }))) return hash;
  const target = { kind: 'user', id: userId, name: email } as const;
  await transact(db, (transaction) =>
    record(transaction, authorOf(context, caller), { action: 'password.refused', target }),
  );
  throw wrongPassword();
}

export function wrongPassword(): Forbidden {
  return new Forbidden('the current password is wrong');
}
