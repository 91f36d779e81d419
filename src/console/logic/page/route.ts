import type { DeviceDecision } from '../../../contract/device-code.ts';

export type ConsoleRoute =
  | { readonly page: 'networks' | 'audit' | 'users' | 'account' | 'unknown' }
  /** The login of a device; null before its code is typed. */
  | { readonly page: 'device'; readonly code: string | null }
  | { readonly page: NetworkPage; readonly network: number }
  | { readonly page: 'peer'; readonly network: number; readonly peer: number };

export type NetworkPage = 'network' | 'peers' | 'events' | 'rules' | 'add-host' | 'keys';

/** The view of a page: names and non-default values. */
export type Query = Readonly<Record<string, string>>;

export function parseRoute(hash: string): ConsoleRoute {
  const [path = ''] = hash.split('?');
  const [first = '', id = '', page = '', ...rest] = path.replace(/^#?\/?/, '').split('/');
  if (first === 'networks' && page === 'peer' && isId(id) && rest.length === 1 && isId(rest[0])) {
    return { page, network: Number(id), peer: Number(rest[0]) };
  }
  if (rest.length > 0) return { page: 'unknown' };
  if (first === 'device' && page === '' && (id === '' || isCode(id))) return { page: first, code: id || null };
  if (first === '' || (first === 'networks' && id === '')) return { page: 'networks' };
  if (first === 'networks' && isId(id)) {
    const network = Number(id);
    if (page === '') return { page: 'network', network };
    const found = networkPages.find((each) => each === page);
    if (found !== undefined) return { page: found, network };
  }
  if ((first === 'audit' || first === 'users' || first === 'account') && id === '') return { page: first };
  return { page: 'unknown' };
}

const networkPages: readonly NetworkPage[] = ['peers', 'events', 'rules', 'add-host', 'keys'];

/** What a person types may be no code at all, which the control plane refuses. */
const isCode = (text: string) => /^[A-Za-z0-9-]{1,20}$/.test(text);

const isId = (text = '') => /^[1-9]\d{0,14}$/.test(text);

export function readQuery(hash: string): Query {
  const at = hash.indexOf('?');
  return at === -1 ? {} : Object.fromEntries(new URLSearchParams(hash.slice(at)));
}

export function linkTo(route: ConsoleRoute, query: Query = {}): string {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== '')).toString();
  return `${linkToPage(route)}${asked === '' ? '' : `?${asked}`}`;
}

function linkToPage(route: ConsoleRoute): string {
  if (route.page === 'device') return `#/device${route.code === null ? '' : `/${route.code}`}`;
  if (!('network' in route)) return `#/${route.page}`;
  if (route.page === 'peer') return `#/networks/${route.network}/peer/${route.peer}`;
  return `#/networks/${route.network}${route.page === 'network' ? '' : `/${route.page}`}`;
}

/**
 * The page of cpn on this machine to which a decision is brought, with the state that cpn put in
 * the link. Null for a device that polls, and without a state.
 */
export function findReturn({ redirect_port: port, code }: DeviceDecision, state: string): string | null {
  if (port === null || !/^[\w-]{16,128}$/.test(state)) return null;
  const answer = new URLSearchParams(code === null ? { error: 'access_denied', state } : { code, state });
  return `http://127.0.0.1:${port}/?${answer}`;
}
