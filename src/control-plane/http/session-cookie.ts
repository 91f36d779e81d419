import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply } from 'fastify';
import { Secret } from '../../core/crypto/secret.ts';
import { tokenPrefixes } from '../domain/tokens.ts';
import { Forbidden } from '../errors.ts';

const cookieName = 'cpn_session';

/** What a browser sends with a request. */
export interface BrowserRequest {
  readonly method: string;
  /** With its port, as the client knows it: also behind a trusted proxy. */
  readonly host: string;
  readonly protocol: string;
  readonly headers: IncomingHttpHeaders;
}

/** The session token in a Cookie header; null without one. A cookie never carries the token of a peer, nor a personal one. */
export function readSessionCookie(header: string | undefined): Secret | null {
  const pattern = new RegExp(`^${cookieName}=(${tokenPrefixes.session}[\\w-]{1,256})$`);
  const values = (header ?? '').split(';').map((part) => pattern.exec(part.trim())?.[1]);
  const token = values.find((value) => value !== undefined);
  return token === undefined ? null : new Secret(token);
}

/** Puts a session into a cookie that scripts cannot read and that no other site causes to be sent. */
export function setSessionCookie(
  request: BrowserRequest,
  reply: FastifyReply,
  path: string,
  { token, expiresAt }: { readonly token: Secret; readonly expiresAt: Date },
): void {
  const attributes = [`${cookieName}=${token.reveal()}`, `Expires=${expiresAt.toUTCString()}`];
  reply.header('set-cookie', [...attributes, ...restrictions(request, path)].join('; '));
}

export function clearSessionCookie(request: BrowserRequest, reply: FastifyReply, path: string): void {
  reply.header('set-cookie', [`${cookieName}=`, 'Max-Age=0', ...restrictions(request, path)].join('; '));
}

function restrictions({ protocol }: BrowserRequest, path: string): string[] {
  return [`Path=${path}`, 'HttpOnly', 'SameSite=Strict', ...(protocol === 'https' ? ['Secure'] : [])];
}

/**
 * Lets only pages of this origin go on: the browser adds the cookie whichever page makes the request. Over plain http, and older browsers
 * also else, send no Sec-Fetch-Site; they send Origin with every change.
 *
 * @throws Forbidden for a request of another origin, or of an unknown one
 */
export function requireSameOrigin({ host, headers }: BrowserRequest): void {
  const site = headers['sec-fetch-site'];
  const isSame = site === undefined ? isOriginOf(headers.origin, host) : site === 'same-origin';
  if (!isSame)
    throw new Forbidden('a change with a session cookie must come from a page of this address; open it again');
}

function isOriginOf(origin: string | undefined, host: string): boolean {
  if (origin === undefined || !URL.canParse(origin)) return false;
  const { protocol, host: own } = new URL(origin);
  // Both without the usual port of the scheme, and in lower case.
  return own !== '' && URL.canParse(`${protocol}//${host}`) && own === new URL(`${protocol}//${host}`).host;
}
