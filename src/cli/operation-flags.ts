import { hostPrefix, lengthOf, type Prefix, parseAddress, parsePrefix } from '../core/cidr.ts';
import { InvalidValue, WrongUsage } from '../core/errors.ts';
import type { Flags } from './command.ts';
import type { Input } from './input.ts';
import { parseListenAddress } from './listen-address.ts';

/** How the control plane stands in its surroundings: TLS, proxies, metrics and limits. */
export const operationFlags: Flags = {
  'tls-cert': {
    kind: 'text',
    value: 'FILE',
    summary: 'serve https with this certificate chain; SIGHUP reads it again',
  },
  'tls-key': { kind: 'text', value: 'FILE', summary: "the certificate's private key, which nobody else may read" },
  'trust-proxy': {
    kind: 'list',
    value: 'CIDR[,CIDR]',
    summary: 'proxies whose X-Forwarded-For is believed; limits and audit then see who is behind them',
  },
  metrics: {
    kind: 'text',
    value: 'HOST:PORT',
    summary: 'serve /metrics there, in plain http to whoever connects, instead of to this machine where the rest is',
  },
  'limit-failed-logins': {
    kind: 'text',
    value: 'N',
    summary: 'failed logins of an address in a minute',
    byDefault: '10',
  },
  'limit-failed-enrollments': {
    kind: 'text',
    value: 'N',
    summary: 'failed enrolments of an address in a minute',
    byDefault: '20',
  },
  'limit-peer-changes': {
    kind: 'text',
    value: 'N',
    summary: 'changes that a peer may make of itself at once; it gets one back a minute',
    byDefault: '30',
  },
  'limit-requests': { kind: 'text', value: 'N', summary: 'requests of an address in a minute', byDefault: '6000' },
};

/** What was said with {@link operationFlags}. */
export function readOperation(input: Input) {
  const metrics = input.text('metrics');
  return {
    tls: readTls(input),
    proxies: [...new Set(input.list('trust-proxy').flatMap((item) => item.split(',')))].map(parseProxy),
    metrics: metrics === undefined ? null : parseListenAddress(input.nameOf('metrics'), metrics),
    limits: {
      failedLogins: readLimit(input, 'limit-failed-logins', 10),
      failedEnrollments: readLimit(input, 'limit-failed-enrollments', 20),
      requests: readLimit(input, 'limit-requests', 6000),
      peerChanges: readLimit(input, 'limit-peer-changes', 30),
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

function parseProxy(text: string): Prefix {
  const named = text.trim();
  const proxy = named.includes('/')
    ? parsePrefix(named, '--trust-proxy')
    : hostPrefix(parseAddress(named, '--trust-proxy'));
  if (lengthOf(proxy) === 0) {
    throw new InvalidValue('--trust-proxy', named, 'would believe anybody', 'name the addresses of your proxies');
  }
  return proxy;
}

function readLimit(input: Input, flag: string, byDefault: number): number {
  return input.number(flag, 1, 1_000_000) ?? byDefault;
}
