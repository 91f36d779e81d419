import type { TlsServer } from '../../core/tls/describe-failure.ts';
import { useHttp } from './attempt-failed.ts';

const client = {
  client: 'this host',
  trust: (certificate: string) =>
    `write ${certificate} to a file in PEM, and set NODE_EXTRA_CA_CERTS to its path (for the daemon: systemctl edit cpn)`,
};

/** @param origin an https URL */
export function controlPlaneAt(origin: string): TlsServer {
  return { ...client, ...hostOf(origin), name: 'the control plane', flag: '--api', plain: useHttp };
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
