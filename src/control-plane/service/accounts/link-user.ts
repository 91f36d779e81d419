import type { LinkUser } from '../../../contract/single-sign-on.ts';
import type { UserCaller } from '../../domain/caller.ts';
import { Forbidden, InvalidRequest, NotFound } from '../../errors.ts';
import {
  deleteIdentity,
  findIdentity,
  findUserOfIdentity,
  insertIdentity,
  recordIdentityLogin,
} from '../../store/accounts/identities.ts';
import { endSessions } from '../../store/accounts/sessions.ts';
import { hasPassword, lockUser } from '../../store/accounts/users.ts';
import { transact } from '../../store/transact.ts';
import { record } from '../audit.ts';
import type { Context } from '../context.ts';
import { proveIfGiven, requireProof } from './prove-password.ts';
import { requireSingleSignOn } from './single-sign-on.ts';
import { lockUsers } from './users.ts';

/**
 * Lets a user of the issuer log in as this user, whose role its groups give from then on. Needs the
 * proof of a new user: the subject may be that of a thief.
 */
export async function linkUser(
  context: Context,
  caller: UserCaller,
  id: number,
  { subject, current_password: own }: LinkUser,
): Promise<void> {
  const proof = await proveIfGiven(context, caller, own);
  await transact(context.db, async (transaction) => {
    const { author, login } = await lockUsers(context, transaction, caller);
    const user = await lockUser(transaction, caller.organizationId, id);
    if (!user) throw new NotFound('user');
    await requireProof(context, transaction, { caller, login, proof, field: 'current_password' });
    const issuer = requireSingleSignOn(context).settings.issuer.href;
    const present = await findIdentity(transaction, id);
    // An issuer may move to another URL.
    if (present && present.issuer !== issuer) await deleteIdentity(transaction, id);
    else if (present)
      throw new InvalidRequest({ subject: ['is not the first one: the user is linked already; unlink it first'] });
    if (await findUserOfIdentity(transaction, { issuer, subject })) {
      throw new InvalidRequest({ subject: ['belongs to another user here already; remove or unlink that user first'] });
    }
    await insertIdentity(transaction, id, { issuer, subject });
    // The age of its tokens counts from now.
    await recordIdentityLogin(transaction, id, context.now().toISOString());
    const target = { kind: 'user', id, name: user.email } as const;
    await record(transaction, author, { action: 'user.link', target, details: { issuer, subject } });
  });
}

/** Makes a linked user a local one again, and ends its sessions. */
export async function unlinkUser(context: Context, caller: UserCaller, id: number): Promise<void> {
  await transact(context.db, async (transaction) => {
    const { author } = await lockUsers(context, transaction, caller);
    const user = await lockUser(transaction, caller.organizationId, id);
    if (!user) throw new NotFound('user');
    if (!(await hasPassword(transaction, id))) {
      throw new Forbidden(`${user.email} has no password and could not log in any more; remove the user instead`);
    }
    const identity = await deleteIdentity(transaction, id);
    if (!identity) throw new NotFound('link of this user');
    const sessions_ended = await endSessions(transaction, id);
    const target = { kind: 'user', id, name: user.email } as const;
    await record(transaction, author, { action: 'user.unlink', target, details: { ...identity, sessions_ended } });
  });
}
