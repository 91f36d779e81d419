import type { Role } from '../../../contract/auth.ts';
import type {
  ChangedUser,
  ChangeUser,
  CreateUser,
  PasswordChange,
  SessionsEnded,
  User,
  UserRemoval,
} from '../../../contract/user.ts';
import type { Secret } from '../../../core/crypto/secret.ts';
import type { UserCaller } from '../../domain/caller.ts';
import { formatLimit, isWithinLimit } from '../../domain/network-limit.ts';
import { hashPassword } from '../../domain/passwords.ts';
import { Forbidden, InvalidRequest, NotFound } from '../../errors.ts';
import { findIdentity } from '../../store/accounts/identities.ts';
import { deleteTokens } from '../../store/accounts/personal-tokens.ts';
import { deleteChallenges, hasFactor } from '../../store/accounts/second-factors.ts';
import { deleteSession, endSessions } from '../../store/accounts/sessions.ts';
import * as store from '../../store/accounts/users.ts';
import type { Slice, StoredPage } from '../../store/page.ts';
import type { Db } from '../../store/tables.ts';
import { transact } from '../../store/transact.ts';
import { record } from '../audit.ts';
import type { Context } from '../context.ts';
import { lockNetworksOf, suspendDevicesOf } from '../devices-of-user.ts';
import { requireUser, type UserAuthor } from '../require-author.ts';
import { withRevision } from '../with-revision.ts';
import { changeRights, isLastOwner, rankOf } from './change-rights.ts';
import { briefly, listMadeBy, revokeMadeBy } from './made-by-user.ts';
import { isSameLimit, nameLimit, readLimit, showLimit, showLimits } from './network-limits.ts';
import { noteAddress } from './new-address.ts';
import { type OpenedSession, openSession } from './open-login.ts';
import { proveIfGiven, provePassword, requireProof, requireSecondFactor, wrongPassword } from './prove-password.ts';

export async function listUsers({ db }: Context, caller: UserCaller, slice: Slice): Promise<StoredPage<User>> {
  return showLimits(db, caller, await store.listUsers(db, caller.organizationId, slice));
}

interface NewUser {
  readonly email: string;
  readonly password: Secret;
  readonly role: Role;
  /** Null for all networks. */
  readonly networks: readonly number[] | null;
  readonly own: string | undefined;
}

/**
 * Needs the caller's password or a recent login: a stolen session must not create a user that
 * outlives it. Only an owner may create an owner.
 * @throws Forbidden for a wrong password, InvalidRequest for a missing one
 */
export async function createUser(
  context: Context,
  caller: UserCaller,
  { email, password, role, networks: asked, own }: NewUser,
): Promise<User> {
  checkRank(caller.role, role, 'make');
  if (!context.allowsPasswords) throw new Forbidden(noPasswords);
  checkOwnerLimit(role, asked);
  const proof = await proveIfGiven(context, caller, own);
  const passwordHash = await hashPassword(password, context.random, context.passwordCost, {
    user: caller.userId,
  });
  return transact(context.db, async (transaction) => {
    const { author, role: rank, login } = await lockUsers(context, transaction, caller);
    checkRank(rank, role, 'make');
    await requireProof(context, transaction, { caller, login, proof, field: ownPassword });
    const networks = await readLimit(transaction, caller, asked);
    const user = await store.insertUnknownUser(transaction, {
      organization_id: caller.organizationId,
      email: email.toLowerCase(),
      password_hash: passwordHash,
      role,
      created_at: context.now().toISOString(),
      networks: formatLimit(networks),
    });
    if (!user) throw emailInUse();
    const target = { kind: 'user', id: user.id, name: user.email } as const;
    const named = await nameLimit(transaction, caller, networks);
    const details = { role, ...(named && { networks: named }) };
    await record(transaction, author, { action: 'user.create', target, details });
    return { ...user, networks };
  });
}

const noPasswords =
  'logins with a password are off (--password-login off), so a user with a password could not log in; users come by single sign-on';

export async function checkEmailFree({ db }: Context, { email }: Partial<CreateUser>): Promise<void> {
  if (email !== undefined && (await store.findUserByEmail(db, email.toLowerCase()))) throw emailInUse();
}

function emailInUse(): InvalidRequest {
  return new InvalidRequest({ email: ['is in use already'] });
}

function checkOwnerLimit(role: Role, networks: readonly number[] | null): void {
  if (role !== 'owner' || networks === null) return;
  throw new InvalidRequest({ networks: ['is not for owners, who have all networks; choose another role too'] });
}

/** True for a change that only reduces the rights of a user of the caller's organization. */
export async function lowersRights(
  { db }: Context,
  caller: UserCaller,
  id: number,
  asked: ChangeUser,
): Promise<boolean> {
  const user = await store.findUser(db, caller.organizationId, id);
  if (user === undefined) return false;
  const next = applyChange(user, asked);
  return !isRaise(user, next) && isRaise(next, user);
}

function applyChange(user: store.Rights, { role = user.role, networks = user.networks }: ChangeUser): store.Rights {
  return { role, networks: role === 'owner' ? null : networks };
}

/** True if the second rights permit something that the first do not. */
function isRaise(before: store.Rights, after: store.Rights): boolean {
  return rankOf(after.role) > rankOf(before.role) || !isWithinLimit(after.networks, before.networks);
}

/** The request field of the caller's own password, next to the password of another user. */
const ownPassword = 'current_password';

/**
 * For owners. Effective from the user's next request. A higher role and more networks need the same
 * proof as a new user. An owner always remains, and has all networks. Unless `keep_keys`, the
 * enrolment keys of a new viewer are revoked, and those of networks that the user loses.
 */
export async function changeUser(
  context: Context,
  caller: UserCaller,
  id: number,
  { current_password: own, keep_keys: keepsKeys = false, ...asked }: ChangeUser,
): Promise<ChangedUser> {
  const proof = await proveIfGiven(context, caller, own);
  return withRevision(context, async (transaction, revise, append) => {
    const { organizationId } = caller;
    const which = { organizationId, userId: id };
    await lockNetworksOf(transaction, which);
    const { author, login } = await lockUsers(context, transaction, caller);
    const user = await store.lockUser(transaction, caller.organizationId, id);
    if (!user) throw new NotFound('user');
    checkOwnerLimit(asked.role ?? user.role, asked.networks ?? null);
    const shown = { ...user, networks: await showLimit(transaction, caller, user.networks) };
    const wanted = asked.networks && { networks: await readLimit(transaction, caller, asked.networks) };
    const { role, networks } = applyChange(shown, { ...asked, ...wanted });
    const isSame = isSameLimit(networks, shown.networks);
    if (role === user.role && isSame) return shown;
    if (isRaise(user, { role, networks }))
      await requireProof(context, transaction, { caller, login, proof, field: ownPassword });
    if (role !== user.role) {
      if (await findIdentity(transaction, id)) throw new Forbidden(roleOfGroups);
      if (await isLastOwner(transaction, organizationId, user.role)) {
        throw new Forbidden(`${user.email} is the last owner; make another user an owner first`);
      }
    }
    const change = { transaction, revise, append, author };
    return changeRights(context, change, { user: shown, organizationId, role, networks, keepsKeys });
  });
}

const roleOfGroups = 'the role of this user comes from its groups at the issuer; change its groups, or unlink it';

interface NewPassword {
  readonly current: Secret;
  readonly next: Secret;
  readonly keepsTokens: boolean;
  /** The form of the session that replaces the session of the request; null for none. */
  readonly session: 'bearer' | 'split' | null;
}

/**
 * Ends the caller's sessions, and revokes its tokens unless `keepsTokens`: a holder of the former
 * password may have made them. A new session replaces the request's, which may have been copied.
 */
export async function changePassword(
  context: Context,
  caller: UserCaller,
  { current, next, keepsTokens, session }: NewPassword,
): Promise<{ change: PasswordChange; opened: OpenedSession | null }> {
  const { db, now, random, passwordCost } = context;
  const { address, credential, email, userId } = caller;
  const before = await provePassword(context, caller, current);
  const passwordHash = await hashPassword(next, random, passwordCost, { user: userId });
  return transact(db, async (transaction) => {
    const { author, login } = await requireUser(context, transaction, caller);
    await requireSecondFactor(context, transaction, { caller, login });
    // A concurrent change may have come first.
    if (!(await store.lockUserWithPassword(transaction, userId, before))) throw wrongPassword();
    await store.setPassword(transaction, userId, passwordHash);
    await deleteChallenges(transaction, userId);
    const own = await deleteSession(transaction, userId, credential.id);
    const ended = await endSessions(transaction, userId);
    // The password replaces no second factor, so the proof is that of the login.
    const provenAt = login !== null && (await hasFactor(transaction, userId)) ? { provenAt: login } : {};
    const fresh = { userId, name: own?.name ?? '', address, isSplit: session === 'split', ...provenAt };
    const opened = session === null ? null : await openSession(context, transaction, fresh);
    const revoked = keepsTokens ? [] : await deleteTokens(transaction, userId, now().toISOString());
    await record(transaction, author, {
      action: 'password.change',
      target: { kind: 'user', id: userId, name: email },
      details: { sessions_ended: ended, tokens_revoked: revoked.map(({ id, name }) => ({ id, name })) },
    });
    if (opened !== null) {
      const target = { kind: 'session', id: opened.id, name: fresh.name } as const;
      await noteAddress(transaction, { userId, address, author, session: target, now: now() });
    }
    const made = await listMadeBy(transaction, { ...caller, within: caller.networks }, now());
    return { change: { sessions_ended: ended, tokens_revoked: revoked, ...made }, opened };
  });
}

/**
 * Voids a user's sessions and tokens, and revokes its enrolment keys unless `keepsKeys`. Only an
 * owner may remove an owner, and no user may remove itself: an organization always has an owner.
 */
export async function deleteUser(
  context: Context,
  caller: UserCaller,
  id: number,
  { keepsKeys }: { readonly keepsKeys: boolean },
): Promise<UserRemoval> {
  return withRevision(context, async (transaction, revise, append) => {
    await lockNetworksOf(transaction, { organizationId: caller.organizationId, userId: id });
    const { author, role } = await lockUsers(context, transaction, caller);
    const user = await store.lockUser(transaction, caller.organizationId, id);
    if (!user) throw new NotFound('user');
    if (id === caller.userId) throw new Forbidden('you may not remove yourself; ask another owner or admin');
    checkRank(role, user.role, 'remove');
    const { organizationId } = caller;
    const made = { organizationId, userId: id };
    const keys_revoked = keepsKeys ? [] : await revokeMadeBy(transaction, made, context.now());
    const devices = await suspendDevicesOf(
      { transaction, revise, append, author, now: context.now(), because: 'user removed' },
      { ...made, email: user.email },
      () => true,
    );
    await store.deleteUser(transaction, caller.organizationId, id);
    const target = { kind: 'user', id, name: user.email } as const;
    await record(transaction, author, {
      action: 'user.delete',
      target,
      details: {
        ...{ role: user.role, keys_revoked: briefly(keys_revoked) },
        ...(devices > 0 && { devices_suspended: devices }),
      },
    });
    return { keys_revoked };
  });
}

/** Ends all sessions of a user, or one of them. Only an owner may end those of an owner. */
export async function endSessionsOf(
  context: Context,
  caller: UserCaller,
  id: number,
  session: number | null,
): Promise<SessionsEnded> {
  return transact(context.db, async (transaction) => {
    const { author, role } = await lockUsers(context, transaction, caller);
    const user = await store.lockUser(transaction, caller.organizationId, id);
    if (!user) throw new NotFound('user');
    checkRank(role, user.role, 'end the sessions of');
    const action = 'session.revoke';
    const target = { kind: 'user', id, name: user.email } as const;
    if (session === null) {
      const sessions_ended = await endSessions(transaction, id);
      if (sessions_ended > 0) await record(transaction, author, { action, target, details: { sessions_ended } });
      return { sessions_ended };
    }
    const ended = await deleteSession(transaction, id, session);
    if (!ended) throw new NotFound('session');
    await record(transaction, author, {
      action,
      target: { kind: 'session', id: session, name: ended.name },
      details: { user: { id, name: user.email } },
    });
    return { sessions_ended: 1 };
  });
}

/**
 * Serializes changes of an organization's users, and reads the caller again: if two users remove
 * each other, the second change finds its author removed, without a deadlock.
 */
export async function lockUsers(context: Context, transaction: Db, caller: UserCaller): Promise<UserAuthor> {
  await store.lockOrganization(transaction, caller.organizationId);
  return requireUser(context, transaction, caller);
}

function checkRank(caller: Role, user: Role, deed: 'make' | 'remove' | 'end the sessions of'): void {
  if (user === 'owner' && caller !== 'owner') throw new Forbidden(`only an owner may ${deed} an owner; ask an owner`);
}
