import { CpnError } from '../core/errors.ts';
import type { Joined } from '../store/state.ts';
import type { Sync } from '../store/store.ts';
import { resolveEndpoints } from './ground.ts';
import type { Tools } from './tools.ts';

/** Milliseconds. Without an answer the host is kept right all the same, and should not wait for it long. */
const mapDeadline = 10_000;

/** A network's state after asking its control plane, and how that went. Nothing is saved yet. */
export interface Refreshed {
  readonly state: Joined;
  readonly sync: Sync;
  /** What kept the newest map away; the last known one stands in its place. */
  readonly failure: CpnError | null;
}

/** Reads the newest map and resolves its endpoints; whatever fails, what was known before stays known. */
export async function refresh(tools: Tools, state: Joined): Promise<Refreshed> {
  const { map, accessToken } = state.membership;
  const known = await tools.store.readSync(state.interface);
  if (accessToken === null) {
    return { state: await resolveEndpoints(tools, state), sync: known, failure: null };
  }
  try {
    const service = await tools.connect(state.service, mapDeadline);
    const { map: newer } = await service.readMap(map.id, accessToken, map.revision);
    const current: Joined = newer === null ? state : { ...state, membership: { ...state.membership, map: newer } };
    const sync = { lastSuccess: tools.now().toISOString(), error: null };
    return { state: await resolveEndpoints(tools, current), sync, failure: null };
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    const sync = { lastSuccess: known.lastSuccess, error: error.message };
    return { state: await resolveEndpoints(tools, state), sync, failure: error };
  }
}
