import type { NetworkLimit } from '../../../contract/auth.ts';
import { isWithinLimit, permits } from '../../domain/network-limit.ts';
import { InvalidRequest } from '../../errors.ts';
import { listNames } from '../../store/networks.ts';
import { mapPage, type StoredPage } from '../../store/page.ts';
import type { Db } from '../../store/tables.ts';

interface Organization {
  readonly organizationId: number;
}

/** A limit as users read it: a stored one still names networks that were deleted since. */
export async function showLimit(db: Db, { organizationId }: Organization, limit: NetworkLimit) {
  if (limit === null) return null;
  const names = await listNames(db, organizationId);
  return limit.filter((id) => names.has(id));
}

export async function showLimits<Holder extends { readonly networks: NetworkLimit }>(
  db: Db,
  { organizationId }: Organization,
  page: StoredPage<Holder>,
): Promise<StoredPage<Holder & { networks: number[] | null }>> {
  const isAny = page.entries.some(({ networks }) => networks !== null);
  const names = isAny ? await listNames(db, organizationId) : new Map();
  return mapPage(page, (holder) => ({ ...holder, networks: holder.networks?.filter((id) => names.has(id)) ?? null }));
}

/**
 * Returns a requested limit in the order of its ids.
 * @param within the limit of the caller, which sees no other networks
 * @throws InvalidRequest for a network that does not exist
 */
export async function readLimit(
  db: Db,
  { organizationId }: Organization,
  asked: readonly number[] | null,
  within: NetworkLimit = null,
): Promise<NetworkLimit> {
  if (asked === null) return null;
  const names = await listNames(db, organizationId);
  const unknown = asked.filter((id) => !names.has(id) || !permits(within, id));
  if (unknown.length > 0) {
    throw new InvalidRequest({ networks: unknown.slice(0, mostRefused).map((id) => `has no network ${id}`) });
  }
  return [...new Set(asked)].sort((one, other) => one - other);
}

const mostRefused = 20;

export function isSameLimit(one: NetworkLimit, other: NetworkLimit): boolean {
  return isWithinLimit(one, other) && isWithinLimit(other, one);
}

/** A limit in the form of the audit log. */
export async function nameLimit(db: Db, { organizationId }: Organization, limit: NetworkLimit) {
  if (limit === null) return null;
  const names = await listNames(db, organizationId);
  return limit.flatMap((id) => (names.has(id) ? [{ id, name: names.get(id) }] : []));
}
