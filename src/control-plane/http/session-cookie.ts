import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply } from 'fastify';
import { Secret } from '../../core/crypto/secret.ts';
import { joinToken, tokenPrefixes } from '../domain/tokens.ts';
import { Forbidden, Unauthenticated } from '../errors.ts';

/** The header with the half of a session that the page keeps. */
export const sessionKeyHeader = 'session-key';

const baseName = 'cpn_session';
/** Prefixed cookies need https, and `__Host-` the path `/` of its host (RFC 6265bis, 4.1.3). */
const cookieNames = [`__Host-${baseName}`, `__Secure-${baseName}`, baseName];

export interface BrowserRequest {
  readonly method: string;
  /** The host with its port as in the client's URL, also behind a trusted proxy. */
  readonly host: string;
  readonly protocol: string;
  readonly headers: IncomingHttpHeaders;
}

/**
 * There may be several: every port of a host and every path can set cookies for this one. A cookie
 * never contains the token of a peer or a personal token.
 */
export function readSessionCookies(header: string | undefined): Secret[] {
  return (header ?? '').split(';').flatMap((part) => {
    const [name = '', value = ''] = part.trim().split('=', 2);
    return cookieNames.includes(name) && cookieValue.test(value) ? [new Secret(value)] : [];
  });
}

const cookieValue = new RegExp(`^${tokenPrefixes.session}[\\w-]{43}$`);

/** The session that matches the page's key; null without a cookie. @throws Unauthenticated */
export function readBrowserSession({ headers }: BrowserRequest): Secret | null {
  const cookies = readSessionCookies(headers.cookie);
  const key = headers[sessionKeyHeader];
  if (cookies.length === 0 && key === undefined) return null;
  const token = typeof key === 'string' ? joinToken(cookies, key) : null;
  if (token === null) throw new Unauthenticated('the session of this page has ended; reload the page and log in again');
  return token;
}

/** Sets a cookie with half of a session, out of reach of scripts and requests of other sites. */
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

/** The cookie of a browser that logs in at an issuer. It opens nothing by itself. */
const loginName = 'cpn_login';

/** Over https, only cookies that no plain page can set. */
export function readLoginCookies(request: BrowserRequest): Secret[] {
  return (request.headers.cookie ?? '').split(';').flatMap((part) => {
    const [name = '', value = ''] = part.trim().split('=', 2);
    return name === loginNameOf(request) && /^[\w-]{43}$/.test(value) ? [new Secret(value)] : [];
  });
}

export function setLoginCookie(
  request: BrowserRequest,
  reply: FastifyReply,
  page: string,
  { cookie, expiresAt }: { readonly cookie: Secret; readonly expiresAt: Date },
): void {
  const expiry = `Expires=${expiresAt.toUTCString()}`;
  reply.header(
    'set-cookie',
    [`${loginNameOf(request)}=${cookie.reveal()}`, expiry, ...loginRestrictions(request, page)].join('; '),
  );
}

function loginNameOf({ protocol }: BrowserRequest): string {
  return protocol === 'https' ? `__Secure-${loginName}` : loginName;
}

/** Lax, because the issuer sends the browser back here. */
function loginRestrictions({ protocol }: BrowserRequest, page: string): string[] {
  const path = `Path=${page}api/auth/single-sign-on`;
  return [path, 'HttpOnly', 'SameSite=Lax', ...(protocol === 'https' ? ['Secure'] : [])];
}

/**
 * Permits only pages of this origin: browsers add the cookie to requests of any page. Without
 * Sec-Fetch-Site (plain http, older browsers), they send Origin with every change.
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

/** @throws Forbidden for a host that is not in the operator's URLs, if there are any */
export function requirePublicHost({ host }: { readonly host: string }, publicUrls: readonly URL[]): void {
  const [first] = publicUrls;
  if (first === undefined || publicUrls.some((url) => isHostOf(host, url))) return;
  throw new Forbidden(`the console is not served at this host; open ${first.href}`);
}

/** Both are compared in lower case and without the default port of the scheme. */
export function isHostOf(host: string, { protocol, host: own }: Pick<URL, 'protocol' | 'host'>): boolean {
  return own !== '' && URL.canParse(`${protocol}//${host}`) && own === new URL(`${protocol}//${host}`).host;
}
