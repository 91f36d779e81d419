import { email as Email } from '../../../contract/text.ts';
import { NewPassword } from '../../../contract/user.ts';
import type { Secret } from '../../../core/crypto/secret.ts';
import { quote, WrongUsage } from '../../../core/errors/index.ts';
import { hashPassword } from '../../domain/passwords.ts';
import { countTokens, deleteTokens } from '../../store/accounts/personal-tokens.ts';
import { deleteFactors } from '../../store/accounts/second-factors.ts';
import { endSessions } from '../../store/accounts/sessions.ts';
import {
  insertOrganization,
  insertUser,
  isAnyUser,
  listOwners,
  setPasswordOfOwner,
} from '../../store/accounts/users.ts';
import { lockTable } from '../../store/database.ts';
import { transact } from '../../store/transact.ts';
import { record, system } from '../audit.ts';
import type { Context } from '../context.ts';
import { listMadeBy, type MadeByUser } from './made-by-user.ts';

export interface OwnerCredentials {
  readonly email: string;
  readonly password: Secret;
}

/** Creates the first user and organization if no user exists; true if so. No default password. */
export async function makeFirstOwner(
  { db, now, readTime, random, passwordCost }: Context,
  owner: OwnerCredentials | null,
): Promise<boolean> {
  if (await isAnyUser(db)) return false;
  checkFirstOwner(owner);
  const passwordHash = await hashPassword(owner.password, random, passwordCost, null);
  return transact(db, async (transaction) => {
    // Two processes that start at the same time must not create one each.
    await lockTable(transaction, 'users');
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
    await record(
      transaction,
      { organizationId, actor: system, address: null, readTime },
      { action: 'user.create', target: { kind: 'user', id, name: email }, details: { role: 'owner' } },
    );
    return true;
  });
}

/** @throws WrongUsage if these are no valid credentials for a first owner */
export function checkFirstOwner(owner: OwnerCredentials | null): asserts owner is OwnerCredentials {
  if (!owner) {
    throw new WrongUsage(
      'the control plane has no user yet; name its first owner with --owner-email and --owner-password-file',
    );
  }
  if (!Email.safeParse(owner.email).success) {
    throw new WrongUsage(`--owner-email ${quote(owner.email)} is not an e-mail address`);
  }
  checkPassword(owner.password, '--owner-password-file');
}

/** True if the named first owner is not an owner in the database. */
export async function isForeignOwner({ db }: Pick<Context, 'db'>, owner: OwnerCredentials): Promise<boolean> {
  return !(await listOwners(db)).includes(owner.email.toLowerCase());
}

type OwnerTools = Pick<Context, 'db' | 'readTime' | 'random' | 'passwordCost'>;

export interface OwnerReset {
  readonly email: string;
  readonly factorsRemoved: number;
  readonly sessionsEnded: number;
  readonly tokensRevoked: readonly { readonly id: number; readonly name: string }[];
  /** The number of personal tokens that are still valid. */
  readonly personalTokens: number;
  /** The users and keys of the owner. A holder of the former password may have created them. */
  readonly made: MadeByUser;
}

/** Sets an owner's password, ends its sessions, and revokes its tokens unless `keepsTokens`. */
export async function resetOwner(
  { db, readTime, random, passwordCost }: OwnerTools,
  owner: OwnerCredentials,
  { keepsTokens }: { readonly keepsTokens: boolean },
): Promise<OwnerReset> {
  checkPassword(owner.password, '--password-file');
  const passwordHash = await hashPassword(owner.password, random, passwordCost, null);
  const email = owner.email.toLowerCase();
  return transact(db, async (transaction) => {
    const at = await readTime(transaction);
    // The first change, so that SQLite waits for the lock of a control plane that serves.
    const user = await setPasswordOfOwner(transaction, email, passwordHash, at.toISOString());
    if (!user) throw new WrongUsage(describeNoOwner(email, await listOwners(transaction)));
    const factorsRemoved = await deleteFactors(transaction, user.id);
    const sessionsEnded = await endSessions(transaction, user.id);
    const revoked = keepsTokens ? [] : await deleteTokens(transaction, user.id, at.toISOString());
    const tokensRevoked = revoked.map(({ id, name }) => ({ id, name }));
    const author = { organizationId: user.organization_id, actor: system, address: null, readTime };
    const target = { kind: 'user', id: user.id, name: email } as const;
    const details = {
      ...(factorsRemoved > 0 && { factors_removed: factorsRemoved }),
      sessions_ended: sessionsEnded,
      tokens_revoked: tokensRevoked,
    };
    await record(transaction, author, { action: 'password.reset', target, details });
    const personalTokens = await countTokens(transaction, user.id);
    const made = await listMadeBy(transaction, { organizationId: user.organization_id, userId: user.id }, at);
    return { email, factorsRemoved, sessionsEnded, tokensRevoked, personalTokens, made };
  });
}

function checkPassword(password: Secret, flag: string): void {
  const { error } = NewPassword.safeParse(password.reveal());
  if (error) throw new WrongUsage(`the password in the file of ${flag} ${error.issues[0]?.message}`);
}

const mostNamed = 20;

function describeNoOwner(email: string, owners: readonly string[]): string {
  const named = owners.slice(0, mostNamed).join(', ');
  const more = owners.length > mostNamed ? ` and ${owners.length - mostNamed} more` : '';
  return `${quote(email)} is not an owner here; the owners are: ${named || 'none'}${more}`;
}
