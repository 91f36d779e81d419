import { Secret } from '../../../core/crypto/secret.ts';
import { CpnError, printable } from '../../../core/errors/index.ts';
import { widenAddress } from '../../domain/caller.ts';
import { readPerson } from '../../domain/issuer-claims.ts';
import type { Claims, SingleSignOn } from '../../domain/single-sign-on.ts';
import { hashToken } from '../../domain/tokens.ts';
import { Forbidden, TooManyRequests, Unauthenticated } from '../../errors.ts';
import { findIdentity, recordIdentityLogin } from '../../store/accounts/identities.ts';
import { insertIssuerSession } from '../../store/accounts/issuer-sessions.ts';
import * as store from '../../store/accounts/login-attempts.ts';
import { findOnlyOrganization, findUserById, lockUser } from '../../store/accounts/users.ts';
import type { Db } from '../../store/tables.ts';
import { transact } from '../../store/transact.ts';
import { record } from '../audit.ts';
import type { Context } from '../context.ts';
import { withRevision } from '../with-revision.ts';
import { admit } from './admit.ts';
import { type OpenedSession, openLogin } from './open-login.ts';

/** How long a user may take to log in at the issuer. */
export const attemptMs = 10 * 60 * 1000;
/** How often the issuer is asked whether a login is still valid. */
export const refreshMs = 5 * 60 * 1000;
const mostAttempts = { ofAddress: 100, ofAll: 50_000 };

/** A login that began: where to send the browser, and the value that only this browser keeps. */
export interface Attempt {
  readonly url: URL;
  readonly browser: Secret;
}

/**
 * Begins a login at the issuer. `own` is the value of a login of this browser that began before.
 * @throws Unavailable if the issuer does not answer
 */
export async function beginLogin(
  context: Context,
  redirectUri: string,
  address: string,
  own?: Secret,
): Promise<Attempt> {
  const { issuer } = requireSingleSignOn(context);
  const make = () => Buffer.from(context.random(32)).toString('base64url');
  const values = { state: make(), nonce: make(), verifier: make() };
  // Two windows of a browser may log in at once.
  const browser = own ?? new Secret(make());
  const from = widenAddress(address) ?? address;
  const url = await issuer.authorize(redirectUri, values);
  const now = context.now();
  await transact(context.db, async (transaction) => {
    await store.deleteAttemptsBefore(transaction, new Date(now.getTime() - attemptMs).toISOString());
    const all = await store.limitAttempts(transaction, from, mostAttempts.ofAddress - 1);
    if (all >= mostAttempts.ofAll) {
      throw new TooManyRequests('logins that did not end', attemptMs / 1000);
    }
    await store.insertAttempt(transaction, {
      state_hash: hashToken(new Secret(values.state)),
      browser_hash: hashToken(browser),
      ...{ nonce: values.nonce, verifier: values.verifier, redirect_uri: redirectUri, address: from },
      created_at: now.toISOString(),
    });
  });
  return { url, browser };
}

/**
 * Redeems the answer of the issuer, and stores what became of the login for the page. Ignores an
 * answer that this browser did not ask for: a stranger's link must not log anyone in.
 */
export async function finishLogin(
  context: Context,
  query: string,
  browsers: readonly Secret[],
  address: string,
): Promise<void> {
  const { db, now } = context;
  const { settings, issuer, seal } = requireSingleSignOn(context);
  const state = new URLSearchParams(query).get('state') ?? '';
  const after = new Date(now().getTime() - attemptMs).toISOString();
  const attempt = await store.findOpenAttempt(db, hashToken(new Secret(state)), after);
  if (!attempt || !browsers.some((each) => hashToken(each) === attempt.browser_hash)) return;
  if (!(await store.takeVerifier(db, attempt.id))) return;
  const callback = new URL(attempt.redirect_uri);
  callback.search = query;
  let claims: Claims = {};
  try {
    const { nonce, verifier } = attempt;
    const grant = await issuer.redeem(callback, { state, nonce, verifier });
    claims = grant.claims;
    const person = readPerson(claims, settings);
    await withRevision(context, async (transaction, revise, append) => {
      const change = { transaction, revise, append };
      const admission = await admit(context, change, settings.issuer.href, person, address);
      if ('refusal' in admission) {
        await refuse(context, transaction, { attempt: attempt.id, claims, address, reason: admission.refusal });
        return;
      }
      const { session: issuer_session, refreshToken } = grant;
      const refresh_token = refreshToken === null ? null : seal.close(refreshToken);
      await store.setOutcome(transaction, attempt.id, {
        ...{ user_id: admission.user.id, subject: person.subject, refusal: null, issuer_session, refresh_token },
      });
    });
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    await transact(db, (transaction) =>
      refuse(context, transaction, { attempt: attempt.id, claims, address, reason: error.message }),
    );
  }
}

interface RefusedLogin {
  readonly attempt: number;
  readonly claims: Claims;
  readonly address: string;
  readonly reason: string;
}

/** The audit has the subject, so that an owner can link it. */
async function refuse(
  { readTime, singleSignOn }: Context,
  transaction: Db,
  { attempt, claims, address, reason }: RefusedLogin,
): Promise<void> {
  await store.setOutcome(transaction, attempt, {
    ...{ user_id: null, subject: null, refusal: reason, issuer_session: null, refresh_token: null },
  });
  const organizationId = (await findOnlyOrganization(transaction)) ?? null;
  const author = { organizationId, actor: { kind: 'nobody', id: null, name: null }, address, readTime } as const;
  const { sub, email } = claims;
  const text = (value: unknown) => (typeof value === 'string' ? printable(value.slice(0, 255)) : null);
  await record(transaction, author, {
    action: 'login.refused',
    target: { kind: 'user', id: null, name: text(email) },
    details: { issuer: singleSignOn?.settings.issuer.href, subject: text(sub), reason },
  });
}

/** Opens the session of a login that the issuer confirmed in this browser. */
export async function redeemLogin(
  context: Context,
  browsers: readonly Secret[],
  { name, address }: { readonly name: string; readonly address: string },
): Promise<OpenedSession> {
  requireSingleSignOn(context);
  const { db, now } = context;
  const at = now();
  const after = new Date(at.getTime() - attemptMs).toISOString();
  const result = await transact(db, async (transaction) => {
    const outcomes: store.StoredAttempt[] = [];
    for (const browser of browsers.slice(0, mostCookies))
      outcomes.push(...(await store.takeOutcomes(transaction, hashToken(browser), after)));
    const outcome = outcomes.at(-1);
    if (outcome?.refusal) return outcome.refusal;
    if (outcome === undefined || outcome.user_id === null) return notBegun;
    return openFor(context, transaction, outcome, { name, address });
  });
  if (typeof result === 'string') throw new Unauthenticated(result);
  return result;
}

const mostCookies = 5;
const notBegun =
  'this browser has no login that waits; it may have taken longer than 10 minutes, or ended in another window; log in again';

async function openFor(
  context: Context,
  transaction: Db,
  { user_id, subject, issuer_session, refresh_token }: store.StoredAttempt,
  { name, address }: { readonly name: string; readonly address: string },
): Promise<OpenedSession | string> {
  const found = user_id === null ? undefined : await findUserById(transaction, user_id);
  const user = found && (await lockUser(transaction, found.organizationId, found.id));
  // The user may have been removed, or unlinked, since the issuer's answer.
  const identity = user && (await findIdentity(transaction, user.id));
  if (!found || !user || identity?.subject !== subject) return notBegun;
  const { id: userId, email } = user;
  const { id, ...opened } = await openLogin(context, transaction, {
    user: { id: userId, email, organizationId: found.organizationId },
    ...{ name, address, isSplit: true, method: 'single_sign_on' },
  });
  const at = context.now();
  await recordIdentityLogin(transaction, userId, at.toISOString());
  const next_at = new Date(at.getTime() + refreshMs).toISOString();
  await insertIssuerSession(transaction, { session_id: id, issuer_session, refresh_token, next_at });
  return opened;
}

/** @throws Forbidden without single sign-on */
export function requireSingleSignOn({ singleSignOn }: Pick<Context, 'singleSignOn'>): SingleSignOn {
  if (singleSignOn !== null) return singleSignOn;
  throw new Forbidden('this control plane has no single sign-on; its operator sets it up with --oidc-issuer');
}
