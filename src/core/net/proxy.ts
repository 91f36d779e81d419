import { Secret } from '../crypto/secret.ts';
import { InvalidValue } from '../errors/index.ts';
import { covers, parseRange, tryParseAddress } from './cidr.ts';
import { type HttpProxy, isLoopbackUrl, type ServiceAddress } from './service-address.ts';
import { isSocketAddress } from './socket-path.ts';

/**
 * Parses `http://user:password@proxy.example:3128`, or without the scheme, as curl does.
 *
 * @throws InvalidValue without the credentials in its message
 */
export function parseProxy(text: string, from: string): HttpProxy {
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`);
  const isUsable = url !== null && url.hostname !== '' && !/[\s\p{Cc}]/u.test(text);
  if (!isUsable) throw new InvalidValue(from, undefined, 'is not the URL of a proxy', writeLike);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new InvalidValue(from, `${url.protocol}//${url.host}`, 'is not an http or https proxy', writeLike);
  }
  if (!/^\/?$/.test(url.pathname) || url.search !== '' || url.hash !== '') {
    throw new InvalidValue(from, url.origin, 'has a path, a query or a fragment', writeLike);
  }
  const user = decode(url.username, from);
  const password = decode(url.password, from);
  const port = url.port === '' ? usualPort(url.protocol) : url.port;
  return {
    url: `${url.protocol}//${url.hostname}:${port}`,
    credentials: user === '' && password === '' ? null : new Secret(`${user}:${password}`),
    from,
  };
}

const writeLike = 'write it like http://proxy.example:3128';

/** The URL of a proxy with its credentials, as {@link parseProxy} reads it. */
export function revealProxy({ url, credentials }: HttpProxy): string {
  if (credentials === null) return url;
  const [user = '', ...password] = credentials.reveal().split(':');
  return url.replace('//', () => `//${encodeURIComponent(user)}:${encodeURIComponent(password.join(':'))}@`);
}

/** True if both are the same proxy with the same credentials, or both are null. */
export function isSameProxy(one: HttpProxy | null, other: HttpProxy | null): boolean {
  return one?.url === other?.url && one?.credentials?.reveal() === other?.credentials?.reveal();
}

/** Null for a direct connection, such as to a control plane on this host. */
export function proxyOf({ url, proxy }: ServiceAddress): HttpProxy | null {
  return proxy === undefined || proxy === 'none' || isLoopbackUrl(url) ? null : proxy;
}

/** The host that requests dial: that of the proxy, if any. A Unix socket is on this host. */
export function dialledHost(service: ServiceAddress): string {
  if (isSocketAddress(service.url)) return '127.0.0.1';
  return hostOf(proxyOf(service)?.url ?? service.url);
}

/** The port at which a host reaches the control plane, or the proxy. */
export function dialledPort(service: ServiceAddress): number {
  const { protocol, port } = new URL(proxyOf(service)?.url ?? service.url);
  return port === '' ? ({ 'http:': 80, 'https:': 443 }[protocol] ?? 443) : Number(port);
}

/**
 * The environment's proxy; null for a host in `NO_PROXY`. Lower-case variables win, as in curl.
 *
 * @throws InvalidValue with the name of the variable
 */
export function findEnvironmentProxy(
  url: string,
  environment: Readonly<Record<string, string | undefined>>,
): HttpProxy | null {
  const scheme = url.startsWith('https:') ? 'https' : 'http';
  const name = [`${scheme}_proxy`, `${scheme.toUpperCase()}_PROXY`].find((each) => environment[each] !== undefined);
  const text = name === undefined ? '' : (environment[name] ?? '').trim();
  if (name === undefined || text === '' || isLoopbackUrl(url)) return null;
  return isExcluded(url, environment.no_proxy ?? environment.NO_PROXY ?? '') ? null : parseProxy(text, name);
}

/**
 * True if a `NO_PROXY` list has the URL's host: by name with subdomains, `.name` or `*.name` for
 * subdomains only, address, prefix or `*`. `:PORT` limits an entry to that port.
 */
export function isExcluded(url: string, list: string): boolean {
  const { protocol, port } = new URL(url);
  const host = hostOf(url).toLowerCase().replace(/\.$/, '');
  const dialled = port === '' ? usualPort(protocol) : port;
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => {
      const { name, only } = splitEntry(entry);
      return (only === null || only === dialled) && matches(host, name);
    });
}

function splitEntry(entry: string): { readonly name: string; readonly only: string | null } {
  // The end of an IPv6 address is no port.
  if (tryParseAddress(entry) !== null) return { name: entry, only: null };
  const [, name = entry, only = null] = /^(.+?)(?::(\d{1,5}))?$/.exec(entry) ?? [];
  return { name: name.replace(/^\[|\]$/g, '').replace(/\.$/, ''), only };
}

function matches(host: string, entry: string): boolean {
  if (entry === '*') return true;
  const address = tryParseAddress(host);
  if (address === null) {
    const name = entry.replace(/^\*?\./, '');
    return name !== '' && ((host === name && !entry.startsWith('*')) || host.endsWith(`.${name}`));
  }
  if (!entry.includes('/')) return tryParseAddress(entry) === address;
  try {
    return covers(parseRange(entry), address);
  } catch {
    return false;
  }
}

function usualPort(protocol: string): string {
  return protocol === 'https:' ? '443' : '80';
}

export function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, '');
}

function decode(text: string, from: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new InvalidValue(from, undefined, 'has credentials with a "%" that encodes nothing', 'write "%" as %25');
  }
}
