import { type CpnError, Refused } from '../errors/index.ts';
import type { NetworkMap } from './model.ts';

/** `token`: 401. `forbidden`: 403, no right to read. `gone`: 404, or a 410 that names it. */
export type SyncRefusal = 'token' | 'forbidden' | 'gone';

const refusals: Readonly<Record<number, SyncRefusal>> = { 401: 'token', 403: 'forbidden', 404: 'gone' };

/** Returns the refusal of a request for the newest map; null for any other failure. */
export function refusalOf(error: CpnError): SyncRefusal | null {
  return error instanceof Refused ? (refusals[error.status] ?? null) : null;
}

/**
 * True of a 410 with the network's id and nonce, which came with a map: only its own control plane
 * has them. Another 410 may come from a proxy, or another service at the same address.
 */
export function statesDeletion(error: CpnError, { id, nonce }: NetworkMap): boolean {
  if (!(error instanceof Refused) || error.deleted === null || nonce === undefined) return false;
  return id !== null && String(error.deleted.id) === String(id) && error.deleted.nonce === nonce;
}
