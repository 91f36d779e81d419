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
    return isRefused(error) && state.membership.accessToken !== null;
  }
}

/**
 * Reads the network before a join is repeated. Where the control plane cannot be read, the join goes on with what is on disk.
 *
 * @throws Refused where the control plane refuses the token of this host
 */
export async function refuseRemoved(tools: Tools, state: Joined): Promise<void> {
  const access = accessOf(state);
  if (access === null) return;
  const { interface: link, membership } = state;
  const { map, accessToken } = membership;
  try {
    const service = await tools.connect(state, { deadlineMs: deadline });
    await service.readMap(access.network, access.token, map);
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    if (!isRefused(error)) {
      tools.warn(`${error.message}; ${link} goes by what it knew of network ${map.name}`);
      return;
    }
    if (accessToken === null) throw error;
    throw new Refused(
      error.status,
      `the join of ${link} again`,
      `this host is no longer in network ${map.name}`,
      'the tunnel stays as it is; "cpn join" with a new key joins again, and "cpn key create" makes one',
    );
  }
}

function isRefused(error: CpnError): error is Refused {
  return error instanceof Refused && (error.status === 401 || error.status === 404);
}
