import { Secret } from '../../../core/crypto/secret.ts';
import type { UserCaller } from '../../domain/caller.ts';
import { verifyPassword } from '../../domain/passwords.ts';
import { isFreshLogin } from '../../domain/tokens.ts';
import { Forbidden, InvalidRequest } from '../../errors.ts';
import { hasFactor } from '../../store/accounts/second-factors.ts';
import { findUserByEmail, hasPassword, lockUserWithPassword } from '../../store/accounts/users.ts';
import type { Db } from '../../store/tables.ts';
import { transact } from '../../store/transact.ts';
import { record } from '../audit.ts';
import type { Context } from '../context.ts';
import { requireAuthor } from '../require-author.ts';

/**
 * Returns the hash that the password matches. A transaction must lock the user with this hash: the
 * password may change meanwhile. The audit log records a wrong password.
 * @throws Forbidden for a wrong password
 */
export async function provePassword(context: Context, caller: UserCaller, password: Secret): Promise<string> {
  const { db, passwordCost } = context;
  const { email, userId } = caller;
  const hash = (await findUserByEmail(db, email))?.password_hash ?? null;
  if (hash !== null && (await verifyPassword(password, hash, passwordCost, { user: userId }))) return hash;
  const target = { kind: 'user', id: userId, name: email } as const;
  await transact(db, async (transaction) =>
    record(transaction, await requireAuthor(context, transaction, caller), { action: 'password.refused', target }),
  );
  throw wrongPassword();
}

export function wrongPassword(): Forbidden {
  return new Forbidden('the current password is wrong; give the one that you log in with');
}

/** Returns the hash that the password matches; null without one. @throws Forbidden if wrong */
export async function proveIfGiven(
  context: Context,
  caller: UserCaller,
  password: string | undefined,
): Promise<string | null> {
  return password === undefined ? null : provePassword(context, caller, new Secret(password));
}

interface Proof {
  readonly caller: UserCaller;
  /** When the user of the request's session proved its identity; null for a personal token. */
  readonly login: string | null;
  /** The result of {@link proveIfGiven}. */
  readonly proof: string | null;
  /** The request field of the password. */
  readonly field: string;
}

/**
 * For changes whose result outlives the credential of the request, such as a new token or user:
 * neither a token nor a stolen session suffices. Runs in the transaction of the change.
 * @throws Forbidden for a personal token or a changed password, InvalidRequest for a missing one
 */
export async function requireProof(context: Context, db: Db, { caller, login, proof, field }: Proof): Promise<void> {
  const { now } = context;
  if (login === null) throw byToken();
  // The thief of a session may have the password, which a second factor is to make useless.
  await requireSecondFactor(context, db, { caller, login });
  if (!(await hasPassword(db, caller.userId))) return requireFreshLogin(context, login);
  if (proof !== null) {
    if (!(await lockUserWithPassword(db, caller.userId, proof))) throw wrongPassword();
  } else if (!isFreshLogin(login, now())) {
    throw new InvalidRequest({
      [field]: ['is required, because the login of this session is more than 5 minutes ago'],
    });
  }
}

/** Refuses a user with a second factor whose login, which proved it, is not recent. */
export async function requireSecondFactor(
  context: Context,
  db: Db,
  { caller, login }: Pick<Proof, 'caller' | 'login'>,
): Promise<void> {
  if (await hasFactor(db, caller.userId)) requireFreshLogin(context, login);
}

/** For changes that no password proves. @throws Forbidden */
export function requireFreshLogin({ now }: Pick<Context, 'now'>, login: string | null): void {
  if (login === null) throw byToken();
  if (isFreshLogin(login, now())) return;
  throw new Forbidden('this needs a login at most 5 minutes ago, and no password replaces it; log in again');
}

function byToken(): Forbidden {
  return new Forbidden('a personal token may not do this; log in with "cpn login" or in the console');
}
