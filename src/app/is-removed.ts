import { CpnError, Refused } from '../core/errors.ts';
import { findOwnPeer } from '../core/own-peer.ts';
import type { Joined } from '../store/state.ts';
import { accessOf } from './access.ts';
import type { Tools } from './tools.ts';

/** Milliseconds for one question to the control plane. */
const deadline = 10_000;

/** True where the service says that this host is no longer in a network that it joined; false also where it cannot be asked. */
export async function isRemoved(tools: Tools, state: Joined): Promise<boolean> {
  const access = accessOf(state);
  if (access === null) return false;
  try {
    const service = await tools.connect(state, { deadlineMs: deadline });
    const { map } = await service.readMap(access.network, access.token, null);
    return map !== null && findOwnPeer(map, state) === undefined;
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    // Its own token is void with the peer. That a person's token is refused says nothing of the peer.
    const isOwn = state.membership.accessToken !== null;
    return error instanceof Refused && isOwn && (error.status === 401 || error.status === 404);
  }
}
