import { InvalidValue, WrongUsage } from '../../core/errors/index.ts';
import { lengthOf, type Prefix, parsePrefixOrAddress } from '../../core/net/cidr.ts';
import type { Flags } from '../input/flags.ts';
import type { Input } from '../input/input.ts';
import { parseListenAddress } from '../input/listen-address.ts';

export const operationFlags: Flags = {
  'tls-cert': {
    kind: 'text',
    value: 'FILE',
    summary: 'serve https with this certificate chain; SIGHUP reloads it',
  },
  'tls-key': { kind: 'text', value: 'FILE', summary: 'private key of the certificate; must not be readable by others' },
  'trust-proxy': {
    kind: 'list',
    value: 'CIDR[,CIDR]',
    summary: "proxies whose X-Forwarded-For is trusted; limits and the audit log then use the client's address",
  },
  'public-url': {
    kind: 'list',
    value: 'URL',
    summary: 'where browsers open the console; its pages and sessions are then refused at other hosts',
  },
  metrics: {
    kind: 'text',
    value: 'HOST:PORT',
    summary: 'serve /metrics here over plain http, without authentication; default: on --listen, for loopback clients',
  },
  'session-idle': {
    kind: 'text',
    value: 'DURATION',
    summary: 'how long a session lasts without use, 5m or more; such as 30m, 12h or 7d',
    byDefault: '24h',
  },
  'session-max': {
    kind: 'text',
    value: 'DURATION',
    summary: 'how long after its login a session ends in any case',
    byDefault: '7d',
  },
  'limit-failed-logins': { kind: 'text', value: 'N', summary: 'failed logins per address and minute', byDefault: '10' },
  'limit-failed-enrollments': {
    kind: 'text',
    value: 'N',
    summary: 'failed enrolments per address and minute',
    byDefault: '20',
  },
  'limit-peer-changes': {
    kind: 'text',
    value: 'N',
    summary: 'burst of changes that a peer may make to itself; refills one per minute',
    byDefault: '30',
  },
  'limit-user-changes': {
    kind: 'text',
    value: 'N',
    summary: 'burst of changes by a user, and of enrolments into a network; refills one per second',
    byDefault: '600',
  },
  'limit-requests': { kind: 'text', value: 'N', summary: 'requests per address and minute', byDefault: '6000' },
};

export function readOperation(input: Input) {
  const metrics = input.text('metrics');
  return {
    tls: readTls(input),
    proxies: [...new Set(input.list('trust-proxy').flatMap((item) => item.split(',')))].map(parseProxy),
    publicUrls: input.list('public-url').map(parsePublicUrl),
    metrics: metrics === undefined ? null : parseListenAddress(input.nameOf('metrics'), metrics),
    sessionLimits: readSessionLimits(input),
    limits: {
      failedLogins: readLimit(input, 'limit-failed-logins', 10),
      failedEnrollments: readLimit(input, 'limit-failed-enrollments', 20),
      requests: readLimit(input, 'limit-requests', 6000),
      peerChanges: readLimit(input, 'limit-peer-changes', 30),
      userChanges: readLimit(input, 'limit-user-changes', 600),
    },
  };
}

function readTls(input: Input): { certificate: string; key: string } | null {
  const certificate = input.text('tls-cert');
  const key = input.text('tls-key');
  if (certificate === undefined && key === undefined) return null;
  if (certificate === undefined || key === undefined) {
    throw new WrongUsage('--tls-cert and --tls-key go together; give both, or neither');
  }
  return { certificate, key };
}

const [dayS, leastSessionS, mostSessionS] = [86_400, 300, 365 * 86_400];

/** Without --session-idle, a shorter --session-max is the limit for both. */
function readSessionLimits(input: Input): { idleMs: number; maxMs: number } {
  const max = input.period('session-max', leastSessionS, mostSessionS) ?? 7 * dayS;
  const idle = input.period('session-idle', leastSessionS, mostSessionS) ?? Math.min(dayS, max);
  if (idle > max) throw new WrongUsage('--session-idle is longer than --session-max; give it a shorter time');
  return { idleMs: idle * 1000, maxMs: max * 1000 };
}

function parseProxy(text: string): Prefix {
  const named = text.trim();
  const proxy = parsePrefixOrAddress(named, '--trust-proxy');
  if (lengthOf(proxy) === 0) {
    throw new InvalidValue('--trust-proxy', named, 'would trust every client', 'name the addresses of your proxies');
  }
  return proxy;
}

function parsePublicUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isPlain = url !== null && [url.username, url.password, url.search, url.hash].every((part) => part === '');
  if (url !== null && isPlain && ['http:', 'https:'].includes(url.protocol)) return url;
  throw new InvalidValue('--public-url', text, 'is not a URL of http or https', 'give it as https://cp.example.net/');
}

function readLimit(input: Input, flag: string, byDefault: number): number {
  return input.number(flag, 1, 1_000_000) ?? byDefault;
}
