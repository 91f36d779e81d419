import { Unreachable } from '../../core/errors/index.ts';
import type { ServiceAddress } from '../../core/net/service-address.ts';
import { probeService } from './is-service-reachable.ts';

/** A variable that makes this process trust more CAs, and the path in it. */
export interface TrustVariable {
  readonly name: string;
  readonly path: string;
}

/** Milliseconds. */
const deadline = 5_000;

/**
 * Finds the variable without which this process would reject the certificate of a control plane.
 * The daemon does not inherit the variables of a shell.
 *
 * @returns null if the CAs of Node, the host or `--ca-file` are sufficient, or if the control plane
 *   does not answer
 */
export async function findTrustVariable(
  service: ServiceAddress,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<TrustVariable | null> {
  if (!service.url.startsWith('https:') || service.authorities !== undefined) return null;
  const variables = names.flatMap((name) => {
    const path = environment[name];
    return path === undefined || path === '' || ofMachine.test(path) ? [] : [{ name, path }];
  });
  const [first] = variables;
  if (first === undefined) return null;
  const tls = process.getBuiltinModule('node:tls');
  // With one of these variables, Node reads other CAs instead of the host's.
  const isReplaced = variables.some(({ name }) => name.startsWith('SSL_'));
  const authorities = [...tls.getCACertificates('bundled'), ...(isReplaced ? [] : tls.getCACertificates('system'))];
  try {
    await probeService({ ...service, authorities }, deadline);
    return null;
  } catch (error) {
    if (error instanceof Unreachable) return error.heard ? first : null;
    throw error;
  }
}

const names = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR'];

/** The paths of CAs that Node reads without a variable on common distributions. */
const ofMachine = /^\/etc\/(ssl\/(cert\.pem|certs\/?|certs\/ca-certificates\.crt)|pki\/(tls|ca-trust)\/.+)$/;
