import { readAuthorities } from '../../core/tls/authority-file.ts';
import type { TlsServer } from '../../core/tls/describe-failure.ts';
import { useHttp } from './attempt-failed.ts';

const client = {
  client: 'this host',
  trust: (certificate: string) =>
    `write ${certificate} to a file in PEM, and give it as --ca-file (in a joined network: cpn set --ca-file FILE)`,
};

/**
 * @param origin an https URL
 * @param authorities the only trusted CAs, each in PEM; null for the default ones
 */
export function controlPlaneAt(origin: string, authorities: readonly string[] | null): TlsServer {
  const findAuthorities = () => authorities && readAuthorities(authorities);
  return { ...client, ...hostOf(origin), name: 'the control plane', flag: '--api', plain: useHttp, findAuthorities };
}

/** @param url an https URL */
export function proxyAt(url: string): TlsServer {
  return {
    ...client,
    ...hostOf(url),
    name: 'the proxy',
    flag: '--proxy',
    plain: 'check the port, or give --proxy an http:// URL',
  };
}

function hostOf(url: string): Pick<TlsServer, 'host' | 'port'> {
  const { hostname, port } = new URL(url);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port || '443' };
}
