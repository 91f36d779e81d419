import { type CpnError, Refused } from '../errors/index.ts';
import type { NetworkMap } from './model.ts';

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

/**
 * True of a 410 with the id and the nonce of this network. The nonce came with a map, so only the
 * network's own control plane has it. Another 410 may come from a proxy, or from another service at
 * the same address.
 */
export function statesDeletion(error: CpnError, { id, nonce }: NetworkMap): boolean {
  if (!(error instanceof Refused) || error.deleted === null || nonce === undefined) return false;
  return id !== null && String(error.deleted.id) === String(id) && error.deleted.nonce === nonce;
}
