import type { OpenSession, Profile } from '../../../contract/auth.ts';
import type { LoginChallenge } from '../../../contract/second-factor.ts';
import type { Secret } from '../../../core/crypto/secret.ts';
import type { Caller, UserCaller } from '../../domain/caller.ts';
import type { PasskeySite } from '../../domain/passkeys.ts';
import { verifyPassword } from '../../domain/passwords.ts';
import { boundSessions, storesUseSince } from '../../domain/session-limits.ts';
import { hashToken, tokenPrefixes } from '../../domain/tokens.ts';
import { Forbidden, NotFound, Unauthenticated } from '../../errors.ts';
import { findIdentity } from '../../store/accounts/identities.ts';
import { findTokenHolder, recordTokenUse, type TokenHolder } from '../../store/accounts/personal-tokens.ts';
import { listFactors } from '../../store/accounts/second-factors.ts';
import {
  deleteSession,
  findSessionHolder,
  listSessions as listStored,
  recordSessionUse,
  type SessionHolder,
} from '../../store/accounts/sessions.ts';
import { findOnlyOrganization, findUser, findUserByEmail, lockUserWithPassword } from '../../store/accounts/users.ts';
import { findPeerCaller, isWaiting } from '../../store/peers/peers.ts';
import type { Db } from '../../store/tables.ts';
import { transact } from '../../store/transact.ts';
import { type AuditedAction, record } from '../audit.ts';
import type { Context } from '../context.ts';
import { requireAuthor, voidCredential } from '../require-author.ts';
import { refuseUnlisted } from '../suspension.ts';
import { showLimit } from './network-limits.ts';
import { type OpenedSession, openLogin } from './open-login.ts';
import { revokeToken } from './personal-tokens.ts';
import { challengeLogin } from './second-step.ts';

/** The minimum time between writes of a token's last use: most requests must not write. */
const useGrainMs = 3600 * 1000;

const passwordsOff =
  'logins with a password are off (--password-login off); log in by single sign-on: in the console, or with "cpn login"; on its host, an owner may use the password of "cpn control-plane reset-owner"';

export interface LoginAttempt {
  readonly email: string;
  readonly password: Secret;
  readonly device: string;
  /** The source address of the request. */
  readonly address: string;
  /** True for a program on this host, without a proxy. */
  readonly isDirect: boolean;
  /** True for a browser, whose cookie is one half of the token. */
  readonly isSplit?: boolean;
  /** Where the page uses passkeys; null for a page that cannot. */
  readonly site?: PasskeySite | null;
}

/**
 * Opens a session, or returns a challenge for the second factor of a page's user. A wrong password
 * and an unknown address cost and return the same.
 *
 * @throws Forbidden for a user with a second factor without a page
 */
export async function login(context: Context, attempt: LoginAttempt): Promise<OpenedSession | LoginChallenge> {
  const { db, passwordCost } = context;
  const email = attempt.email.toLowerCase();
  if (!context.allowsPasswords && !attempt.isDirect) throw new Forbidden(passwordsOff);
  const user = await findUserByEmail(db, email);
  const known = await verifyPassword(attempt.password, user?.password_hash ?? null, passwordCost, attempt.address);
  if (!user || !known) {
    await recordRefusal(context, attempt, user);
    throw new Unauthenticated('e-mail address or password is wrong');
  }
  if (!context.allowsPasswords && user.reset_at === null) throw new Forbidden(passwordsOff);
  const isReset = user.reset_at !== null && attempt.isDirect;
  if (!isReset && (await isLinked(context, user.id))) throw new Forbidden(atIssuer);
  const { password_hash: hash } = user;
  if (hash === null) throw new Error('a password matched no hash');
  const name = shorten(attempt.device);
  const result = await transact(db, async (transaction) => {
    // The user may have been removed meanwhile, or its password changed.
    const held = await lockUserWithPassword(transaction, user.id, hash);
    if (!held) throw new Unauthenticated('e-mail address or password is wrong');
    const factors = await listFactors(transaction, user.id);
    if (factors.length > 0) {
      if (attempt.isSplit)
        return challengeLogin(context, transaction, {
          userId: user.id,
          ...{ device: name, address: attempt.address },
          factors,
          site: attempt.site ?? null,
        });
      await recordRefusalIn(context, transaction, { attempt, user, details: { second_factor: 'missing' } });
      return null;
    }
    const { id: _, ...opened } = await openLogin(context, transaction, {
      user: { id: user.id, email, organizationId: user.organization_id },
      ...{ name, address: attempt.address, isSplit: attempt.isSplit ?? false, method: 'password' },
    });
    return opened;
  });
  if (result === null) throw new Forbidden(needsPage);
  return result;
}

/** True for a user of the issuer, whose groups decide whether it may log in. */
async function isLinked({ db, singleSignOn }: Context, userId: number): Promise<boolean> {
  const issuer = singleSignOn?.settings.issuer.href;
  return issuer !== undefined && (await findIdentity(db, userId))?.issuer === issuer;
}

const atIssuer =
  'this user is linked to the issuer of single sign-on, and logs in there; an owner unlinks it with "cpn user unlink"';

const needsPage =
  'this user has a second factor, so a password alone opens no session; log in by the console (cpn login --no-browser), or use a ' +
  'personal token (cpn login --token-file FILE)';

const mostOfName = 255;

/** Shortens a name without a limit, for the audit log. PostgreSQL stores no NUL. */
export function shorten(name: string): string {
  const start = name.slice(0, 2 * mostOfName).replaceAll('\0', '\u{fffd}');
  return [...start].slice(0, mostOfName).join('');
}

/** Records a refused login, also for an unknown address, so that both take the same time. */
async function recordRefusal(context: Context, attempt: LoginAttempt, user: RefusedLogin['user']): Promise<void> {
  await transact(context.db, (transaction) => recordRefusalIn(context, transaction, { attempt, user }));
}

interface RefusedLogin {
  readonly attempt: LoginAttempt;
  readonly user: { readonly id: number; readonly organization_id: number } | undefined;
  readonly details?: AuditedAction['details'];
}

async function recordRefusalIn(
  { readTime }: Context,
  transaction: Db,
  { attempt: { email, address }, user, details = {} }: RefusedLogin,
): Promise<void> {
  const only = await findOnlyOrganization(transaction);
  const author = {
    organizationId: user?.organization_id ?? only ?? null,
    actor: { kind: 'nobody', id: null, name: null },
    address,
    readTime,
  } as const;
  const target = { kind: 'user', id: user?.id ?? null, name: email.toLowerCase().slice(0, 254) } as const;
  await record(transaction, author, { action: 'login.refused', target, details });
}

interface TokenUse extends Pick<UserCaller, 'address' | 'access' | 'scope'> {
  /** False if the request does not keep a session from its idle limit. */
  readonly isUse: boolean;
}

/** Refuses unknown and expired tokens, and suspended peers. Does not check access. */
export async function identify(context: Context, token: Secret, { isUse, ...use }: TokenUse): Promise<Caller> {
  const caller = await findCaller(context, token, isUse);
  if (!caller) throw new Unauthenticated(voidCredential);
  return { ...caller, ...use };
}

async function findCaller(context: Context, token: Secret, isUse: boolean) {
  const { db, now } = context;
  const hash = hashToken(token);
  const at = now();
  const isFor = (prefix: string) => token.reveal().startsWith(prefix);
  if (isFor(tokenPrefixes.peer)) {
    const found = await findPeerCaller(db, hash);
    if (!found) return undefined;
    refuseUnlisted(found.peer, at);
    return { ...found.caller, awaitsApproval: isWaiting(found.peer) };
  }
  if (!isFor(tokenPrefixes.personal)) return findUserInSession(context, hash, isUse);
  const holder = await findTokenHolder(db, hash, at.toISOString());
  if (holder) refuseAfterAbsence(context, holder, at);
  const since = new Date(at.getTime() - useGrainMs).toISOString();
  if (holder && (holder.lastUsedAt === null || holder.lastUsedAt < since)) {
    // A database on a full disk can still be read.
    await recordTokenUse(db, holder.caller.credential.id, at.toISOString(), since).catch(() => undefined);
  }
  return holder?.caller;
}

/** The issuer may have removed the user: it does not report that of a user without a session. */
function refuseAfterAbsence({ singleSignOn }: Context, { lastLogin }: TokenHolder, now: Date): void {
  const maxAgeMs = singleSignOn?.settings.tokenMaxAgeMs;
  if (maxAgeMs === undefined || lastLogin === null || now.getTime() - Date.parse(lastLogin) < maxAgeMs) return;
  throw new Unauthenticated(
    `personal tokens work for ${maxAgeMs / dayMs} days after a login of their user; the user logs in to the console again`,
  );
}

const dayMs = 24 * 3600 * 1000;

/**
 * True for a session that no refresh token renews, a day after the issuer last confirmed its user:
 * the issuer may have removed the user since.
 */
function isUnconfirmed({ singleSignOn }: Context, { isRenewedBy, confirmedAt }: SessionHolder, now: Date): boolean {
  const issuer = singleSignOn?.settings.issuer.href;
  if (issuer === undefined || confirmedAt === null || isRenewedBy === issuer) return false;
  return now.getTime() - Date.parse(confirmedAt) > unconfirmedMs;
}

const unconfirmedMs = 24 * 3600 * 1000;

async function findUserInSession(context: Context, hash: string, isUse: boolean) {
  const { db, now, sessionLimits } = context;
  const at = now();
  const holder = await findSessionHolder(db, hash, boundSessions(sessionLimits, at));
  if (holder && isUnconfirmed(context, holder, at)) return undefined;
  const since = storesUseSince(at);
  if (holder && isUse && holder.lastUsedAt < since) {
    // A database on a full disk can still be read.
    await recordSessionUse(db, holder.caller.credential.id, at.toISOString(), since).catch(() => undefined);
  }
  return holder?.caller;
}

/** Ends the session or revokes the personal token of the request, and no other. */
export async function logout(context: Context, caller: UserCaller): Promise<void> {
  const { kind, id } = caller.credential;
  if (kind === 'token') return revokeToken(context, caller, id);
  await transact(context.db, async (transaction) => {
    const author = await requireAuthor(context, transaction, caller);
    const ended = await deleteSession(transaction, caller.userId, id);
    if (!ended) return;
    await record(transaction, author, {
      action: 'logout',
      target: { kind: 'session', id, name: ended.name },
    });
  });
}

/** The sessions of the caller, or of another user of its organization. */
export async function listSessions(
  context: Context,
  caller: UserCaller,
  userId = caller.userId,
): Promise<OpenSession[]> {
  const { kind, id: own } = caller.credential;
  const { maxMs } = context.sessionLimits;
  if (!(await findUser(context.db, caller.organizationId, userId))) throw new NotFound('user');
  const sessions = await listStored(context.db, userId, boundSessions(context.sessionLimits, context.now()));
  return sessions.map(({ id, name, created_at, expires_at, last_used_at, address }) => {
    const end = Math.min(Date.parse(expires_at), Date.parse(created_at) + maxMs);
    return {
      ...{ id, device_name: name, created_at, expires_at: new Date(end).toISOString() },
      ...{ last_used_at, address, is_current: kind === 'session' && id === own },
    };
  });
}

export async function revokeSession(context: Context, caller: UserCaller, id: number): Promise<void> {
  await transact(context.db, async (transaction) => {
    const author = await requireAuthor(context, transaction, caller);
    const ended = await deleteSession(transaction, caller.userId, id);
    if (!ended) throw new NotFound('session');
    const target = { kind: 'session', id, name: ended.name } as const;
    await record(transaction, author, { action: 'session.revoke', target });
  });
}

export async function readProfile({ db }: Context, caller: UserCaller): Promise<Profile> {
  const user = await findUser(db, caller.organizationId, caller.userId);
  if (!user) throw new Unauthenticated('the user was removed');
  return { ...user, networks: await showLimit(db, caller, caller.networks) };
}
