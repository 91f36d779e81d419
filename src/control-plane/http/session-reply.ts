import type { FastifyReply } from 'fastify';
import type { CookieSession, Session } from '../../contract/auth.ts';
import { readers } from '../domain/caller.ts';
import { splitToken } from '../domain/tokens.ts';
import { Unauthenticated } from '../errors.ts';
import type { OpenedSession } from '../service/accounts/open-login.ts';
import { identify, logout } from '../service/accounts/sessions.ts';
import type { Context } from '../service/context.ts';
import { type BrowserRequest, readBrowserSession, setSessionCookie } from './session-cookie.ts';

/**
 * Returns a new session in the form of the request: a bearer token, or with the path of a page a
 * cookie and its key. The session that this browser had before ends.
 */
export async function replyWithSession(
  context: Context,
  request: BrowserRequest & { readonly ip: string },
  response: FastifyReply,
  path: string | undefined,
  { token, expiresAt: expires_at }: OpenedSession,
): Promise<{ data: Session } | { data: CookieSession }> {
  if (path === undefined) return { data: { access_token: token.reveal(), token_type: 'Bearer', expires_at } };
  return replyWithCookie(context, request, response, path, { token, expiresAt: expires_at });
}

/** Returns a new session of a page: a cookie and its key. The browser's former session ends. */
export async function replyWithCookie(
  context: Context,
  request: BrowserRequest & { readonly ip: string },
  response: FastifyReply,
  path: string,
  { token, expiresAt: expires_at }: OpenedSession,
): Promise<{ data: CookieSession }> {
  await endReplacedSession(context, request);
  const { cookie, key } = splitToken(token);
  setSessionCookie(request, response, path, { cookie, expiresAt: new Date(expires_at) });
  return { data: { session_key: key.reveal(), expires_at } };
}

/** Ends this browser's previous session: a copy of its halves must not outlive the cookie. */
async function endReplacedSession(context: Context, request: BrowserRequest & { readonly ip: string }): Promise<void> {
  try {
    const token = readBrowserSession(request);
    const use = { address: request.ip, access: readers, scope: 'filtered', isUse: false } as const;
    const caller = token && (await identify(context, token, use));
    if (caller?.kind === 'user') await logout(context, caller);
  } catch (error) {
    if (!(error instanceof Unauthenticated)) throw error;
  }
}
