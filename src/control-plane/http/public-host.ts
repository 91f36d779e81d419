import { Forbidden } from '../errors.ts';

/**
 * Refuses a browser request for a host that is not in the operator's URLs. Without URLs, any host
 * is permitted.
 *
 * @throws Forbidden for another host
 */
export function requirePublicHost({ host }: { readonly host: string }, publicUrls: readonly URL[]): void {
  const [first] = publicUrls;
  if (first === undefined || publicUrls.some((url) => isHostOf(host, url))) return;
  throw new Forbidden(`the console is not served at this host; open ${first.href}`);
}

/** Both are compared in lower case and without the default port of the scheme. */
export function isHostOf(host: string, { protocol, host: own }: Pick<URL, 'protocol' | 'host'>): boolean {
  return own !== '' && URL.canParse(`${protocol}//${host}`) && own === new URL(`${protocol}//${host}`).host;
}
