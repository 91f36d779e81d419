import type { FactorKind } from '../../../contract/second-factor.ts';
import type { Secret } from '../../../core/crypto/secret.ts';
import { boundSessions } from '../../domain/session-limits.ts';
import { hashToken, mintSplitToken, mintToken, tokenPrefixes } from '../../domain/tokens.ts';
import { deleteExpiredSessions, endOldestSessions, insertSession } from '../../store/accounts/sessions.ts';
import type { Db } from '../../store/tables.ts';
import { afterCommit } from '../../store/transact.ts';
import { record } from '../audit.ts';
import type { Context } from '../context.ts';
import { extendOwnDevices } from '../devices-of-user.ts';
import { noteAddress } from './new-address.ts';

/** The maximum number of sessions per user. A later login ends the oldest. */
const mostSessions = 100;

/** The second proof of identity, after the password. */
export type SecondProof = FactorKind | 'recovery_code';

/** How a user proved its identity. */
export type LoginMethod = 'password' | `password+${SecondProof}` | 'device_code' | 'single_sign_on';

export interface Login {
  readonly user: { readonly id: number; readonly email: string; readonly organizationId: number };
  readonly name: string;
  /** The source address of the request. */
  readonly address: string;
  /** True for a browser, whose cookie is one half of the token. */
  readonly isSplit: boolean;
  readonly method: LoginMethod;
  /** When the user proved its identity, if before this login. */
  readonly provenAt?: string;
  /** More details for the audit log. */
  readonly details?: Readonly<Record<string, unknown>>;
}

export interface OpenedSession {
  readonly token: Secret;
  readonly expiresAt: string;
}

/**
 * Opens the session of a login, and records it and a new address. The caller has locked the user
 * and checked its proof of identity.
 */
export async function openLogin(
  context: Context,
  transaction: Db,
  { user, name, address, isSplit, method, provenAt, details }: Login,
): Promise<OpenedSession & { readonly id: number }> {
  const opened = await openSession(context, transaction, {
    ...{ userId: user.id, name, address, isSplit },
    ...(provenAt !== undefined && { provenAt }),
  });
  const author = {
    organizationId: user.organizationId,
    actor: { kind: 'user', id: user.id, name: user.email },
    address,
    readTime: context.readTime,
  } as const;
  const session = { kind: 'session', id: opened.id, name } as const;
  await record(transaction, author, { action: 'login', target: session, details: { method, ...details } });
  await noteAddress(transaction, { userId: user.id, address, author, session, now: context.now() });
  const { id: userId, organizationId } = user;
  // Not within the transaction, which has locked the user: networks are locked before users.
  afterCommit(transaction, () => extendOwnDevices(context, { organizationId, userId }, { isLogin: true }));
  return opened;
}

interface NewSession {
  readonly userId: number;
  readonly name: string;
  readonly address: string;
  readonly isSplit: boolean;
  readonly provenAt?: string;
}

/** Opens a session without a record. Ends the oldest surplus sessions. */
export async function openSession(
  { now, random, sessionLimits }: Context,
  transaction: Db,
  { userId, name, address, isSplit, provenAt }: NewSession,
): Promise<OpenedSession & { readonly id: number }> {
  const token = isSplit ? mintSplitToken(random) : mintToken(tokenPrefixes.session, random);
  const at = now();
  const created_at = at.toISOString();
  const expiresAt = new Date(at.getTime() + sessionLimits.maxMs).toISOString();
  await deleteExpiredSessions(transaction, boundSessions(sessionLimits, at));
  const id = await insertSession(transaction, {
    ...{ user_id: userId, name, token_hash: hashToken(token), created_at, expires_at: expiresAt, address },
    ...{ last_used_at: created_at, proven_at: provenAt ?? null },
  });
  await endOldestSessions(transaction, userId, mostSessions);
  return { id, token, expiresAt };
}
