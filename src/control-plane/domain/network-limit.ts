import type { NetworkLimit, Role } from '../../contract/auth.ts';
import { Forbidden, NotFound } from '../errors.ts';

/**
 * What a request is about, for callers with a limit: the network of its path, the account of the
 * caller, or the organization. A `filtered` route applies the limit itself.
 */
export type Scope = number | 'account' | 'filtered' | 'organization';

/** The limit of a user. An owner has none, whatever an earlier role left behind. */
export function limitOfUser({ role, networks }: { role: Role; networks: string | null }): NetworkLimit {
  return role === 'owner' ? null : parseLimit(networks);
}

export function parseLimit(column: string | null): NetworkLimit {
  return column === null ? null : (JSON.parse(column) as number[]);
}

export function formatLimit(limit: NetworkLimit): string | null {
  return limit === null ? null : JSON.stringify(limit);
}

/** The networks that both limits permit. */
export function intersect(one: NetworkLimit, other: NetworkLimit): NetworkLimit {
  if (one === null || other === null) return one ?? other;
  const networks = new Set(one);
  return other.filter((id) => networks.has(id));
}

export function permits(limit: NetworkLimit, network: number): boolean {
  return limit === null || limit.includes(network);
}

/** True if `limit` permits no network beyond `other`. */
export function isWithinLimit(limit: NetworkLimit, other: NetworkLimit): boolean {
  if (other === null) return true;
  const networks = new Set(other);
  return limit?.every((id) => networks.has(id)) ?? false;
}

interface Limited {
  readonly networks: NetworkLimit;
  readonly credential: { readonly isLimited: boolean };
  readonly scope: Scope;
}

/**
 * Refuses a caller beyond its limit. To it, other networks do not exist.
 * @throws NotFound for another network, Forbidden for an operation on the organization
 */
export function checkLimit({ networks, credential: { isLimited }, scope }: Limited): void {
  if (networks === null || scope === 'filtered') return;
  if (typeof scope === 'number') {
    if (!permits(networks, scope)) throw new NotFound('network');
    return;
  }
  if (isLimited) {
    throw new Forbidden('a token that is limited to networks may not do this; log in, or use a token without a limit');
  }
  if (scope === 'account') return;
  throw new Forbidden('a user who is limited to networks may not do this; ask an owner, or an admin without a limit');
}
