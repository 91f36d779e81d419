import { effect, signal } from '@preact/signals';
import type { CookieSession, Profile, Role } from '../contract/auth.ts';
import type { LoginChallenge } from '../contract/second-factor.ts';
import type { SingleSignOn } from '../contract/single-sign-on.ts';
import type { ChangePassword, PasswordChange } from '../contract/user.ts';
import { ApiError, call, loginPath, ownPath, sessionsEnded, singleSignOnPath, storeSessionKey } from './client.ts';

/** The user of the session. Null without a session, undefined before the first reply. */
export const profile = signal<Profile | null | undefined>(undefined);

/** True if the session ended without a logout in this window. */
export const hasEnded = signal(false);

/** Why the page cannot be used at all. */
export const startProblem = signal<string | null>(null);

/** Other windows of this browser share the session. */
const otherWindows = new BroadcastChannel(`cpn session ${ownPath()}`);
otherWindows.onmessage = () => void openSession();

/** Counts changes of the session, so that a late reply to an earlier request is ignored. */
let latest = 0;

/** Reads the profile of the session, if there is one. */
export async function openSession(): Promise<void> {
  latest += 1;
  const turn = latest;
  try {
    const read = await call<Profile>('GET', 'api/auth/me');
    if (turn !== latest) return;
    profile.value = read;
    startProblem.value = null;
    hasEnded.value = false;
  } catch (error) {
    if (turn !== latest) return;
    if (error instanceof ApiError && error.status === 401) {
      profile.value = null;
      startProblem.value = null;
    } else startProblem.value = error instanceof Error ? error.message : String(error);
  }
}

/** A login that waits for a second factor. */
export type SecondStep = LoginChallenge['second_factor'];

/** Opens a session, or returns the second step of a user with a second factor. @throws ApiError */
export async function logIn(email: string, password: string): Promise<SecondStep | null> {
  const fields = { email, password, device_name: 'console', session_cookie: ownPath() };
  const reply = await call<Partial<CookieSession & LoginChallenge>>('POST', loginPath, fields);
  if (reply.second_factor !== undefined) return reply.second_factor;
  await beginSession(reply);
  return null;
}

/** Opens the session of a second step. @throws ApiError */
export async function passSecondStep({ challenge }: SecondStep, proof: object): Promise<void> {
  const fields = { challenge, ...proof, session_cookie: ownPath() };
  await beginSession(await call<CookieSession>('POST', `${loginPath}/second-factor`, fields));
}

/** A cookie has one half of the secret, this page the other. */
async function beginSession({ session_key }: Partial<CookieSession>): Promise<void> {
  latest += 1;
  // A replica of an earlier version sends none, and needs none.
  storeSessionKey(session_key ?? null);
  profile.value = await call<Profile>('GET', 'api/auth/me');
  hasEnded.value = false;
  otherWindows.postMessage(null);
}

/** The hash of the page from the issuer, before a session is open. */
const returnHash = '#/single-sign-on';
export const isBackFromIssuer = () => location.hash === returnHash;

/** Why the login at the issuer opened no session. */
export const singleSignOnProblem = signal<string | null>(null);

const pageBefore = () => `cpn page before single sign-on ${ownPath()}`;

/** Sends this window to the issuer. It comes back to the same page. @throws ApiError */
export async function beginSingleSignOn(): Promise<void> {
  const { authorization_url } = await call<SingleSignOn>('POST', singleSignOnPath, { session_cookie: ownPath() });
  sessionStorage.setItem(pageBefore(), isBackFromIssuer() ? '' : location.hash);
  location.assign(authorization_url);
  // The page stays until the issuer answers.
  await new Promise(() => {});
}

/** Opens the session of a login at the issuer, and shows the page from which it began. */
export async function endSingleSignOn(): Promise<void> {
  const fields = { session_cookie: ownPath(), device_name: 'console' };
  try {
    const { session_key } = await call<CookieSession>('POST', `${singleSignOnPath}/session`, fields);
    storeSessionKey(session_key);
    otherWindows.postMessage(null);
  } catch (error) {
    singleSignOnProblem.value = error instanceof Error ? error.message : String(error);
  }
  // Back does not come here again.
  location.replace(sessionStorage.getItem(pageBefore()) || '#/networks');
  sessionStorage.removeItem(pageBefore());
  await openSession();
}

/** Changes the password. A new session with cookie and key replaces this one. @throws ApiError */
export async function changePassword(fields: Omit<ChangePassword, 'session_cookie'>): Promise<PasswordChange> {
  const changed = await call<PasswordChange>('PUT', 'api/auth/password', { ...fields, session_cookie: ownPath() });
  // A replica of an earlier version keeps the session.
  if (changed.session_key !== undefined) storeSessionKey(changed.session_key);
  // A concurrent request may have been refused.
  if (profile.value === null) await openSession();
  otherWindows.postMessage(null);
  return changed;
}

/** Ends the session. @throws ApiError */
export async function logOut(): Promise<void> {
  await call('POST', 'api/auth/logout', { session_cookie: ownPath() });
  latest += 1;
  storeSessionKey(null);
  sessionsEnded.value += 1;
  hasEnded.value = false;
  otherWindows.postMessage(null);
}

effect(() => {
  if (sessionsEnded.value === 0) return;
  if (profile.peek()) hasEnded.value = true;
  profile.value = null;
});

function hasRole(...roles: readonly Role[]): boolean {
  const role = profile.value?.role;
  return role !== undefined && roles.includes(role);
}

/** True if the user may change networks, peers and keys. */
export const canEdit = () => hasRole('owner', 'admin', 'member');
/** True for an owner or admin, who without a limit may read the audit log and manage users. */
export const canAdminister = () => hasRole('owner', 'admin');
/** True if the user is limited to networks, and so changes nothing of the organization. */
export const isLimited = () => (profile.value?.networks ?? null) !== null;
export const isOwner = () => hasRole('owner');
