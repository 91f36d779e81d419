import type { NetworkMap, ProvidedRemarks } from '../../../core/map/model.ts';
import { routeDnsOf } from '../../../core/names/route-dns.ts';

interface NamingNetwork {
  readonly map: NetworkMap;
  readonly text?: ProvidedRemarks;
}

/**
 * The domains behind routes under which anyone may register names (publicsuffix.org), such as
 * `co.uk`, or the whole of a provider, such as `github.io`.
 */
export async function findPublicSuffixes({ map, text }: NamingNetwork): Promise<readonly string[]> {
  const domains = routeDnsOf(map, text).flatMap((entry) => entry.domains);
  if (domains.length === 0) return [];
  // Loading the list takes milliseconds, and most networks have no such domain.
  const { getPublicSuffix } = await import('tldts');
  return domains.filter((domain) => getPublicSuffix(domain, { allowPrivateDomains: true }) === domain);
}
