import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { CpnError } from '../../core/errors/index.ts';
import { readGroups, readPerson } from '../domain/issuer-claims.ts';
import type { SingleSignOn } from '../domain/single-sign-on.ts';
import { failureFields, IssuerRefused, Unavailable } from '../errors.ts';
import { admit } from '../service/accounts/admit.ts';
import { refreshMs } from '../service/accounts/single-sign-on.ts';
import { record, system } from '../service/audit.ts';
import type { Context } from '../service/context.ts';
import { extendOwnDevices } from '../service/devices-of-user.ts';
import { withRevision } from '../service/with-revision.ts';
import {
  type DueSession,
  isSessionOfIdentity,
  listDueSessions,
  setRefreshToken,
  takeDueSession,
} from '../store/accounts/issuer-sessions.ts';
import { deleteSession } from '../store/accounts/sessions.ts';
import { findUserById } from '../store/accounts/users.ts';
import { transact } from '../store/transact.ts';

const pollMs = 10_000;
const batchSize = 50;

/**
 * Renews each login at the issuer every 5 minutes, and follows the groups of the user. An issuer
 * without an answer ends nothing. One process at a time renews a session.
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
  for (const session of due) {
    if (signal.aborted) return 0;
    const until = new Date(now().getTime() + refreshMs).toISOString();
    if (!(await takeDueSession(db, session, until))) continue;
    await refreshOne(context, session).catch((error) => {
      if (!(error instanceof CpnError) || error instanceof Unavailable) throw error;
      log.warn({ ...failureFields(error), session: session.id }, 'login not refreshed');
    });
  }
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
  const grant = await issuer.refresh(token, subject).catch((error) => {
    if (error instanceof IssuerRefused && error.isEnd) return null;
    throw error;
  });
  if (grant === null) return endSession(context, id, userId);
  // Before anything else: the issuer may accept the former token no more.
  if (grant.refreshToken !== null) await setRefreshToken(db, id, seal.close(grant.refreshToken));
  // Without an ID token, groups that are absent may be groups that are not shown.
  const isPartial = !grant.hasIdToken && readGroups(grant.claims, settings.groupsClaim).length === 0;
  if (isPartial) return;
  const person = readPerson(grant.claims, settings);
  const admission = await withRevision(context, async (transaction, revise, append) => {
    // An unlinked identity must not become a new user here.
    if (!(await isSessionOfIdentity(transaction, id))) return null;
    return admit(context, { transaction, revise, append }, settings.issuer.href, person, null);
  });
  if (admission === null || 'refusal' in admission) return;
  const { organizationId } = admission.user;
  await extendOwnDevices(context, { organizationId, userId }, { isLogin: false });
}

async function endSession(context: Context, id: number, userId: number): Promise<void> {
  await transact(context.db, async (transaction) => {
    const user = await findUserById(transaction, userId);
    const ended = user && (await deleteSession(transaction, userId, id));
    if (!ended) return;
    const { organizationId } = user;
    const author = { organizationId, actor: system, address: null, readTime: context.readTime };
    const target = { kind: 'session', id, name: ended.name } as const;
    await record(transaction, author, { action: 'login.end', target, details: { reason: 'issuer', user: userId } });
  });
}
