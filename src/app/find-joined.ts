import type { ServiceAddress } from '../core/model.ts';
import type { Joined } from '../store/state.ts';
import { isJoined } from './select.ts';
import type { Tools } from './tools.ts';

/**
 * The network that this host joined already through this control plane, on this interface where one is named; null when there is none.
 * One to which the control plane refuses this host is none: it was removed, or its network was deleted.
 * What it was joined with, be it the key, plays no part: who sets hosts up again and again makes a new key each time.
 */
export async function findJoined(
  { store }: Pick<Tools, 'store'>,
  service: ServiceAddress,
  link: string | null,
): Promise<Joined | null> {
  const joined = (await store.list()).states.filter(isJoined);
  for (const state of joined) {
    if (state.service.url !== service.url || (link !== null && state.interface !== link)) continue;
    const { refused } = (await store.readNotes(state.interface)).sync;
    if (refused !== 'token' && refused !== 'gone') return state;
  }
  return null;
}
