import { isIPv4 } from 'node:net';
import { maskTokens, type Secret } from '../crypto/secret.ts';
import { InvalidValue, WrongUsage } from '../errors/index.ts';
import { isSocketAddress, parseSocketAddress, socketPathOf } from './socket-path.ts';

/**
 * Checks the address of a control plane before anything is sent there: https, a Unix socket, or http where the bytes stay on this host
 * or with `--insecure-http`; no credentials, query or fragment. Gives it back without a trailing slash.
 */
export function parseServiceAddress(text: string, insecureHttp: boolean): ServiceAddress {
  if (isSocketAddress(text)) return { url: `unix:${parseSocketAddress('--api', text)}`, insecureHttp };
  const url = /^https?:\/\/[^\s\p{Cc}]+$/iu.test(text) ? URL.parse(text) : null;
  if (!url) {
    // What stands before an "@" or after a "?" or "#" may be secret.
    const shown = maskTokens(text.replace(/^.*@/s, '[credentials]@').replace(/[?#].*$/s, ''));
    const remedy = 'write it like https://api.example.com, or like unix:/run/cpn-control-plane/api.sock';
    throw invalid(shown, 'is not an http(s) URL', remedy);
  }
  const plain = `${url.origin}${url.pathname}`;
  if (url.username !== '' || url.password !== '') {
    throw invalid(plain, 'came with credentials, which would end up in logs', 'leave out what stands before the "@"');
  }
  if (/[?#]/.test(text)) {
    throw invalid(plain, 'came with a query or a fragment', 'leave out what follows the "?" or "#"');
  }
  if (url.protocol === 'http:' && !insecureHttp && !isLoopback(url.hostname)) {
    throw invalid(plain, 'is plain http: keys and tokens would cross the network unencrypted', httpRemedy);
  }
  return { url: plain.replace(/\/+$/, ''), insecureHttp };
}

const httpRemedy = 'use https, or say --insecure-http if that network is trusted';

/** The URL below which the requests of a service are. That of a Unix socket names no host. @throws InvalidValue */
export function baseOf({ url, insecureHttp }: ServiceAddress): URL {
  const parsed = parseServiceAddress(url, insecureHttp).url;
  return new URL(socketPathOf(parsed) === null ? parsed : 'http://localhost');
}

/**
 * The service with these CAs. With undefined its CAs stay, with null it has none.
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

/** True where only the user of the listening socket shows whether the control plane answers: on this host, without TLS. */
export function isCheckedByListener(url: string): boolean {
  return isSocketAddress(url) || (url.startsWith('http:') && isLoopbackUrl(url));
}

/** `URL` has already turned 0x7f.1 and the like into dotted decimal. */
function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || (isIPv4(hostname) && hostname.startsWith('127.'));
}

function invalid(value: string, rule: string, remedy: string): InvalidValue {
  return new InvalidValue('--api', value, rule, remedy);
}

/** Where a control plane is, and how it is reached. */
export interface ServiceAddress {
  /** The base address, without a trailing slash; `unix:PATH` for a Unix socket. */
  readonly url: string;
  /** An operator allows plain http to it beyond loopback. */
  readonly insecureHttp: boolean;
  /** `none` for a direct connection whatever the environment names; absent where the environment decides. */
  readonly proxy?: HttpProxy | 'none';
  /**
   * The user (uid) whose program listened there, or who owned the Unix socket, when a person last named the address; absent for one that
   * is not on this host or has TLS, and where no listener was visible.
   */
  readonly listener?: number;
  /**
   * The CAs that alone may issue the certificate of the control plane, each in PEM; absent where the CAs of Node and of this machine may.
   */
  readonly authorities?: readonly string[];
}

/** An HTTP proxy, through which a host reaches its control plane. */
export interface HttpProxy {
  /** Scheme, host and port, without credentials: for messages too. */
  readonly url: string;
  /** As `user:password`; null where the proxy wants none. */
  readonly credentials: Secret | null;
  /** The flag or variable that named it. */
  readonly from: string;
}
