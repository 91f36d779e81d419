import { isIPv4 } from 'node:net';
import { maskTokens, type Secret } from '../crypto/secret.ts';
import { InvalidValue, WrongUsage } from '../errors/index.ts';
import { isSocketAddress, parseSocketAddress, socketPathOf } from './socket-path.ts';

/**
 * Checks a control plane's address before any request: https, a Unix socket, and http to this host
 * or with `--insecure-http`; no credentials, query or fragment. Drops a trailing slash.
 */
export function parseServiceAddress(text: string, insecureHttp: boolean): ServiceAddress {
  if (isSocketAddress(text)) return { url: `unix:${parseSocketAddress('--api', text)}`, insecureHttp };
  const url = /^https?:\/\/[^\s\p{Cc}]+$/iu.test(text) ? URL.parse(text) : null;
  if (!url) {
    // The text before an "@", or after a "?" or "#", may be secret.
    const shown = maskTokens(text.replace(/^.*@/s, '[credentials]@').replace(/[?#].*$/s, ''));
    const remedy = 'write it like https://api.example.com, or like unix:/run/cpn-control-plane/api.sock';
    throw invalid(shown, 'is not an http(s) URL', remedy);
  }
  const plain = `${url.origin}${url.pathname}`;
  if (url.username !== '' || url.password !== '') {
    throw invalid(plain, 'has credentials, which would appear in logs', 'remove the part before the "@"');
  }
  if (/[?#]/.test(text)) {
    throw invalid(plain, 'has a query or a fragment', 'remove the part from the "?" or "#" on');
  }
  if (url.protocol === 'http:' && !insecureHttp && !isLoopback(url.hostname)) {
    throw invalid(plain, 'is plain http: keys and tokens would cross the network unencrypted', httpRemedy);
  }
  return { url: plain.replace(/\/+$/, ''), insecureHttp };
}

const httpRemedy = 'use https, or add --insecure-http if that network is trusted';

/** The base URL of requests, with a placeholder host for a Unix socket. @throws InvalidValue */
export function baseOf({ url, insecureHttp }: ServiceAddress): URL {
  const parsed = parseServiceAddress(url, insecureHttp).url;
  return new URL(socketPathOf(parsed) === null ? parsed : 'http://localhost');
}

/**
 * Sets the CAs of a service. Undefined keeps its CAs, null removes them.
 *
 * @throws WrongUsage for CAs of an address without TLS
 */
export function withAuthorities(
  service: ServiceAddress,
  authorities: readonly string[] | null | undefined,
): ServiceAddress {
  if (authorities === undefined) return service;
  const { authorities: _, ...others } = service;
  if (authorities === null) return others;
  if (service.url.startsWith('https:')) return { ...others, authorities };
  throw new WrongUsage(`--ca-file is for a control plane at https, and ${service.url} has no TLS; leave it out`);
}

/** True for the address of a control plane on this host. */
export function isLoopbackUrl(url: string): boolean {
  return isSocketAddress(url) || isLoopback(new URL(url).hostname);
}

/** True if only the socket's user identifies the control plane: on this host, without TLS. */
export function isCheckedByListener(url: string): boolean {
  return isSocketAddress(url) || (url.startsWith('http:') && isLoopbackUrl(url));
}

/** `URL` has already normalized 0x7f.1 and the like to dotted decimal. */
function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || (isIPv4(hostname) && hostname.startsWith('127.'));
}

function invalid(value: string, rule: string, remedy: string): InvalidValue {
  return new InvalidValue('--api', value, rule, remedy);
}

/** The address of a control plane, and the path to it. */
export interface ServiceAddress {
  /** The base address, without a trailing slash. `unix:PATH` for a Unix socket. */
  readonly url: string;
  /** True if an operator allows plain http beyond loopback. */
  readonly insecureHttp: boolean;
  /** `none` forces a direct connection. Absent if the environment decides. */
  readonly proxy?: HttpProxy | 'none';
  /**
   * The uid of the listening program, or of the Unix socket's owner, when a user last set the
   * address. Absent for a remote address, for TLS, and if no listener was visible.
   */
  readonly listener?: number;
  /** The only CAs, in PEM, for the control plane. Absent if Node's and the machine's count. */
  readonly authorities?: readonly string[];
}

/** An HTTP proxy between a host and its control plane. */
export interface HttpProxy {
  /** Scheme, host and port, without credentials, so messages may contain it. */
  readonly url: string;
  /** `user:password`. Null if the proxy needs none. */
  readonly credentials: Secret | null;
  /** The flag or variable from which it was read. */
  readonly from: string;
}
