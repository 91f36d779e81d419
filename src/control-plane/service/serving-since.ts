import { findLastServingSince } from '../store/peers/peers.ts';
import type { Db } from '../store/tables.ts';

/**
 * The instant from which a connector serves: now, but later than all others of the network. Hosts
 * prefer the earlier one. A connector that began while the clock was ahead keeps its rank.
 */
export async function nextServingSince(transaction: Db, network: number, now: Date): Promise<string> {
  const last = await findLastServingSince(transaction, network);
  const at = Math.max(now.getTime(), last === null ? 0 : Date.parse(last) + 1);
  return new Date(at).toISOString();
}
