import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply } from 'fastify';
import { Secret } from '../../core/crypto/secret.ts';
import { joinToken, tokenPrefixes } from '../domain/tokens.ts';
import { Forbidden, Unauthenticated } from '../errors.ts';
import { isHostOf } from './public-host.ts';

/** The header with the half of a session that the page keeps. */
export const sessionKeyHeader = 'session-key';

const baseName = 'cpn_session';
/** Browsers take a cookie with a prefix over https only, and `__Host-` for the path `/` of that host alone (RFC 6265bis, 4.1.3). */
const cookieNames = [`__Host-${baseName}`, `__Secure-${baseName}`, baseName];

/** What a browser sends with a request. */
export interface BrowserRequest {
  readonly method: string;
  /** With its port, as the client knows it: also behind a trusted proxy. */
  readonly host: string;
  readonly protocol: string;
  readonly headers: IncomingHttpHeaders;
}

/**
 * The halves of sessions in a Cookie header. There may be several: every port of a host, and each path, can set cookies for this one.
 * A cookie never carries the token of a peer, nor a personal one.
 */
export function readSessionCookies(header: string | undefined): Secret[] {
  return (header ?? '').split(';').flatMap((part) => {
    const [name = '', value = ''] = part.trim().split('=', 2);
    return cookieNames.includes(name) && cookieValue.test(value) ? [new Secret(value)] : [];
  });
}

const cookieValue = new RegExp(`^${tokenPrefixes.session}[\\w-]{43}$`);

/** The session of a browser: that of the cookie which fits the key of the page; null without a cookie. @throws Unauthenticated where none fits */
export function readBrowserSession({ headers }: BrowserRequest): Secret | null {
  const cookies = readSessionCookies(headers.cookie);
  const key = headers[sessionKeyHeader];
  if (cookies.length === 0 && key === undefined) return null;
  const token = typeof key === 'string' ? joinToken(cookies, key) : null;
  if (token === null) throw new Unauthenticated('the session of this page has ended; reload the page and log in again');
  return token;
}

/** Puts a half of a session into a cookie that scripts cannot read and that no other site causes to be sent. */
export function setSessionCookie(
  request: BrowserRequest,
  reply: FastifyReply,
  path: string,
  { cookie, expiresAt }: { readonly cookie: Secret; readonly expiresAt: Date },
): void {
  const attributes = [`${nameOf(request, path)}=${cookie.reveal()}`, `Expires=${expiresAt.toUTCString()}`];
  reply.header('set-cookie', [...attributes, ...restrictions(request, path)].join('; '));
}

export function clearSessionCookie(request: BrowserRequest, reply: FastifyReply, path: string): void {
  reply.header('set-cookie', [`${nameOf(request, path)}=`, 'Max-Age=0', ...restrictions(request, path)].join('; '));
}

function nameOf({ protocol }: BrowserRequest, path: string): string {
  if (protocol !== 'https') return baseName;
  return path === '/' ? `__Host-${baseName}` : `__Secure-${baseName}`;
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
  return origin !== undefined && URL.canParse(origin) && isHostOf(host, new URL(origin));
}
