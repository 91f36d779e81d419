import { homeDomain } from './split-dns.ts';

/**
 * Loads the test for domains under which anyone may register names (publicsuffix.org), such as
 * `co.uk`, or the whole of a provider, such as `github.io`.
 */
export async function loadPublicSuffixes(): Promise<(domain: string) => boolean> {
  // Loading the list takes milliseconds, and few commands need it.
  const { getPublicSuffix } = await import('tldts');
  return (domain) => domain !== homeDomain && getPublicSuffix(domain, { allowPrivateDomains: true }) === domain;
}

/** The domains that are public suffixes. */
export async function findPublicSuffixes(domains: readonly string[]): Promise<readonly string[]> {
  return domains.length === 0 ? [] : domains.filter(await loadPublicSuffixes());
}
