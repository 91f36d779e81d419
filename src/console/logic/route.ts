/** A page of the console, and the network that it is about. */
export type Route =
  | { readonly page: 'networks' | 'audit' | 'users' | 'account' | 'unknown' }
  | { readonly page: NetworkPage; readonly network: number };

export type NetworkPage = 'network' | 'peers' | 'add-host' | 'keys';

/** Reads the part of the URL after `#`. */
export function parseRoute(hash: string): Route {
  const [first = '', id = '', page = '', ...rest] = hash.replace(/^#?\/?/, '').split('/');
  if (rest.length > 0) return { page: 'unknown' };
  if (first === '' || (first === 'networks' && id === '')) return { page: 'networks' };
  if (first === 'networks' && /^[1-9]\d{0,14}$/.test(id)) {
    const network = Number(id);
    if (page === '') return { page: 'network', network };
    if (page === 'peers' || page === 'add-host' || page === 'keys') return { page, network };
  }
  if ((first === 'audit' || first === 'users' || first === 'account') && id === '') return { page: first };
  return { page: 'unknown' };
}

/** The link to a page. */
export function linkTo(route: Route): string {
  if (!('network' in route)) return `#/${route.page}`;
  return `#/networks/${route.network}${route.page === 'network' ? '' : `/${route.page}`}`;
}
