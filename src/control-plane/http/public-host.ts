import { Forbidden } from '../errors.ts';

/**
 * Refuses a browser that came by another host than those of the operator's URLs; without URLs any host is allowed.
 *
 * @throws Forbidden for another host
 */
export function requirePublicHost({ host }: { readonly host: string }, publicUrls: readonly URL[]): void {
  const [first] = publicUrls;
  if (first === undefined || publicUrls.some((url) => isHostOf(host, url))) return;
  throw new Forbidden(`the console is not served at this host; open ${first.href}`);
}

/** Both without the usual port of the scheme, and in lower case. */
export function isHostOf(host: string, { protocol, host: own }: Pick<URL, 'protocol' | 'host'>): boolean {
  return own !== '' && URL.canParse(`${protocol}//${host}`) && own === new URL(`${protocol}//${host}`).host;
}
