import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Secret } from '../../core/crypto/secret.ts';
import { CpnError } from '../../core/errors/index.ts';
import { readPerson } from '../domain/issuer-claims.ts';
import type { SingleSignOn } from '../domain/single-sign-on.ts';
import { failureFields, IssuerRefused, Unavailable } from '../errors.ts';
import { admit } from '../service/accounts/admit.ts';
import { refreshMs } from '../service/accounts/single-sign-on.ts';
import { record, system } from '../service/audit.ts';
import type { Context } from '../service/context.ts';
import { extendOwnDevices } from '../service/devices-of-user.ts';
import { withRevision } from '../service/with-revision.ts';
import { listUsersWithDevices, recordConfirmation } from '../store/accounts/identities.ts';
import {
  type DueSession,
  isSessionOfIdentity,
  listDueSessions,
  setRefreshToken,
  takeDueSession,
} from '../store/accounts/issuer-sessions.ts';
import { deleteSession, endUnrenewedSessions } from '../store/accounts/sessions.ts';
import { findUserById } from '../store/accounts/users.ts';
import { transact } from '../store/transact.ts';

const pollMs = 10_000;
const batchSize = 50;
const mostFailures = 3;

/**
 * Renews each login at the issuer every 5 minutes, and follows the groups of the user. An issuer
 * without an answer ends nothing, and extends own devices. One process at a time renews a session.
 */
export function startRefreshing(
  context: Context & { readonly singleSignOn: SingleSignOn },
  log: Pick<Logger, 'info' | 'warn'>,
  pauseMs = pollMs,
): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;
  let isDown = false;
  const run = async () => {
    while (!signal.aborted) {
      try {
        while (!signal.aborted && (await refreshDue(context, log, signal)) === batchSize);
        if (isDown) log.info('the issuer answers again');
        isDown = false;
      } catch (error) {
        if (!isDown) log.warn(failureFields(error), 'logins not refreshed; sessions stay open');
        isDown = true;
        if (error instanceof Unavailable)
          await extendDevices(context).catch((failure) => log.warn(failureFields(failure), 'own devices not extended'));
      }
      await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => {});
    }
  };
  const running = run();
  return {
    stop: () => {
      stopping.abort();
      return running;
    },
  };
}

/** Returns the number of sessions that were due. @throws Unavailable without an answer */
async function refreshDue(
  context: Context & { readonly singleSignOn: SingleSignOn },
  log: Pick<Logger, 'warn'>,
  signal: AbortSignal,
): Promise<number> {
  const { db, now, singleSignOn } = context;
  const due = await listDueSessions(db, singleSignOn.settings.issuer.href, now().toISOString(), batchSize);
  let failures = 0;
  for (const session of due) {
    if (signal.aborted) return 0;
    const until = new Date(now().getTime() + refreshMs).toISOString();
    if (!(await takeDueSession(db, session, until))) continue;
    const failure = await refreshOne(context, session).then(
      () => null,
      (error: unknown) => error,
    );
    if (failure === null) failures = 0;
    else {
      failures += 1;
      // One session may be the cause. After several, the issuer is.
      if (!(failure instanceof CpnError) || (failure instanceof Unavailable && failures >= mostFailures)) throw failure;
      log.warn({ ...failureFields(failure), session: session.id }, 'login not refreshed');
    }
  }
  if (failures > 0 && failures === due.length) throw new Unavailable('the issuer does not answer');
  return due.length;
}

async function refreshOne(
  context: Context & { readonly singleSignOn: SingleSignOn },
  { id, userId, subject, refreshToken }: DueSession,
): Promise<void> {
  const { db, singleSignOn } = context;
  const { settings, issuer, seal } = singleSignOn;
  const token = seal.open(refreshToken);
  // The client secret was changed. The session ends at its limits, and the next login has a token.
  if (token === null) return setRefreshToken(db, id, null);
  const keep = (next: Secret) => setRefreshToken(db, id, seal.close(next));
  const grant = await issuer.refresh(token, subject, keep).catch((error) => {
    if (error instanceof IssuerRefused && error.isEnd) return error;
    throw error;
  });
  if (grant instanceof IssuerRefused) return endSession(context, { id, userId, reason: grant.message });
  const admission = await withRevision(context, async (transaction, revise, append) => {
    // An unlinked identity must not become a new user here.
    if (!(await isSessionOfIdentity(transaction, id))) return null;
    const person = readPerson(grant.claims, settings);
    const admitted = await admit(context, { transaction, revise, append }, settings.issuer.href, person, null);
    await recordConfirmation(transaction, userId, context.now().toISOString());
    return admitted;
  }).catch((error) => {
    // What the issuer states gives no access, and is no reason to revoke more than this session.
    if (error instanceof IssuerRefused) return error;
    throw error;
  });
  if (admission instanceof IssuerRefused) await endSession(context, { id, userId, reason: admission.message });
}

/** Keeps own devices in their networks while the issuer is down: their users cannot log in. */
async function extendDevices(context: Context & { readonly singleSignOn: SingleSignOn }): Promise<void> {
  const { db, singleSignOn } = context;
  for (const user of await listUsersWithDevices(db, singleSignOn.settings.issuer.href))
    await extendOwnDevices(context, user, { isLogin: false });
}

/** Ends a session, and those of the user without a refresh token, which lean on it. */
async function endSession(
  context: Context,
  { id, userId, reason }: { readonly id: number; readonly userId: number; readonly reason: string },
): Promise<void> {
  await transact(context.db, async (transaction) => {
    const user = await findUserById(transaction, userId);
    if (!user) return;
    const ended = await deleteSession(transaction, userId, id);
    const others = await endUnrenewedSessions(transaction, userId);
    if (!ended && others === 0) return;
    const { organizationId } = user;
    const author = { organizationId, actor: system, address: null, readTime: context.readTime };
    const target = { kind: 'session', id, name: ended?.name ?? null } as const;
    const details = { reason: 'issuer', cause: reason, user: userId, sessions_ended: others + (ended ? 1 : 0) };
    await record(transaction, author, { action: 'login.end', target, details });
  });
}
