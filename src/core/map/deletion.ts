import { type CpnError, Refused } from '../errors/index.ts';
import type { NetworkMap } from './model.ts';

/**
 * True of a 410 with the id and the nonce of this network. The nonce came with a map, so only the
 * network's own control plane has it. Another 410 may come from a proxy, or from another service at
 * the same address.
 */
export function statesDeletion(error: CpnError, { id, nonce }: NetworkMap): boolean {
  if (!(error instanceof Refused) || error.deleted === null || nonce === undefined) return false;
  return id !== null && String(error.deleted.id) === String(id) && error.deleted.nonce === nonce;
}
