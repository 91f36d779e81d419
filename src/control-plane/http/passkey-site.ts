import { isIP } from 'node:net';
import type { PasskeySite } from '../domain/passkeys.ts';
import { isHostOf } from './session-cookie.ts';

/** The site of a page for passkeys, or why browsers offer none there. */
export interface PageSite {
  readonly hostName: string;
  readonly passkeys: PasskeySite | null;
  readonly problem: string | null;
}

/** The operator's URL names the scheme, which a proxy may hide. The route checked the host. */
export function readPageSite(
  { host, protocol }: { readonly host: string; readonly protocol: string },
  publicUrls: readonly URL[],
): PageSite {
  const url = publicUrls.find((each) => isHostOf(host, each)) ?? URL.parse(`${protocol}://${host}`);
  const hostName = url?.hostname ?? '';
  const problem = findProblem(hostName, url?.protocol ?? '');
  return {
    hostName,
    problem,
    passkeys: url === null || problem !== null ? null : { rpId: hostName, origin: url.origin },
  };
}

function findProblem(hostName: string, protocol: string): string | null {
  if (hostName === '' || isIP(hostName.replace(/^\[|\]$/g, '')) !== 0)
    return 'a passkey belongs to a DNS name; open the console by its name instead of an IP address';
  const isLocal = hostName === 'localhost' || hostName.endsWith('.localhost');
  if (protocol !== 'https:' && !isLocal)
    return 'browsers offer passkeys only over https; set up TLS, or behind a proxy name its address with --public-url';
  return null;
}
