import { type CpnError, Refused } from '../errors/index.ts';

/**
 * Why a service refuses a host its network: the token is void (401), the host may not read the
 * network (403), or the network is gone (404, or a 410 that names it).
 */
export type SyncRefusal = 'token' | 'forbidden' | 'gone';

const refusals: Readonly<Record<number, SyncRefusal>> = { 401: 'token', 403: 'forbidden', 404: 'gone' };

/**
 * Returns the refusal for which a request for the newest map failed; null for any other failure.
 */
export function refusalOf(error: CpnError): SyncRefusal | null {
  return error instanceof Refused ? (refusals[error.status] ?? null) : null;
}
