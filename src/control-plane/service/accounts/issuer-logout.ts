import { findUserOfIdentity } from '../../store/accounts/identities.ts';
import { type EndedSession, listSessionsOfIssuer } from '../../store/accounts/issuer-sessions.ts';
import { deleteTokens } from '../../store/accounts/personal-tokens.ts';
import { deleteSession, endSessionsBefore } from '../../store/accounts/sessions.ts';
import { findUserById } from '../../store/accounts/users.ts';
import { transact } from '../../store/transact.ts';
import { record, system } from '../audit.ts';
import type { Context } from '../context.ts';
import { requireSingleSignOn } from './single-sign-on.ts';

/** The clock of the issuer may be behind. A replay must not end the sessions of later logins. */
const clockToleranceMs = 60_000;

/**
 * Ends what a logout token names: a session, or all sessions and personal tokens of a user. A token
 * for a user or session that is unknown here changes nothing.
 * @throws IssuerRefused if the token is not valid, Unavailable if its keys cannot be read
 */
export async function logOutByIssuer(context: Context, token: string, address: string): Promise<void> {
  const { settings, issuer } = requireSingleSignOn(context);
  const { subject, session, at } = await issuer.readLogout(token);
  const before = new Date(at.getTime() + clockToleranceMs).toISOString();
  const found = { issuer: settings.issuer.href, before };
  if (session !== null) {
    const sessions = await listSessionsOfIssuer(context.db, { ...found, session });
    for (const ended of sessions) await endSession(context, ended, address);
    if (sessions.length > 0) return;
  }
  // A session without an id here may be the one that the token names.
  const endsTokens = session === null;
  if (subject !== null) await endAll(context, { issuer: found.issuer, subject, before, address, endsTokens });
}

async function endSession(context: Context, { id, name, userId }: EndedSession, address: string): Promise<void> {
  await transact(context.db, async (transaction) => {
    const user = await findUserById(transaction, userId);
    if (!user || !(await deleteSession(transaction, userId, id))) return;
    const author = { organizationId: user.organizationId, actor: system, address, readTime: context.readTime };
    const target = { kind: 'session', id, name } as const;
    await record(transaction, author, { action: 'login.end', target, details: { reason: 'logout', user: userId } });
  });
}

interface EndedUser {
  readonly issuer: string;
  readonly subject: string;
  readonly before: string;
  readonly address: string;
  readonly endsTokens: boolean;
}

async function endAll(context: Context, { before, address, endsTokens, ...identity }: EndedUser): Promise<void> {
  await transact(context.db, async (transaction) => {
    const user = await findUserOfIdentity(transaction, identity);
    if (!user) return;
    const { id, email, organizationId } = user;
    const sessions_ended = await endSessionsBefore(transaction, id, before);
    const tokens = endsTokens ? await deleteTokens(transaction, id, context.now().toISOString()) : [];
    const tokens_revoked = tokens.map((token) => ({ id: token.id, name: token.name }));
    if (sessions_ended + tokens.length === 0) return;
    const author = { organizationId, actor: system, address, readTime: context.readTime };
    const details = { reason: 'logout', sessions_ended, tokens_revoked };
    await record(transaction, author, { action: 'login.end', target: { kind: 'user', id, name: email }, details });
  });
}
