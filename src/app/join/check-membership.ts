import { CpnError, Refused } from '../../core/errors/index.ts';
import { findOwnPeer } from '../../core/map/own-peer.ts';
import type { ServiceAddress } from '../../core/net/service-address.ts';
import type { Joined } from '../../store/state/state.ts';
import { accessOf } from '../access.ts';
import { isJoined } from '../select.ts';
import type { Tools } from '../tools.ts';

/** Milliseconds for one request to the control plane. */
const deadline = 10_000;

/**
 * Returns the network that this host joined through a control plane, on the given interface if any.
 * A network whose control plane refuses this host (removed, or network deleted) does not count. The
 * enrolment key is not compared: provisioning creates a new one for each run.
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

/** True if the service no longer lists this host in its network; false if it is unreachable. */
export async function isRemoved(tools: Pick<Tools, 'connect'>, state: Joined): Promise<boolean> {
  const access = accessOf(state);
  if (access === null) return false;
  try {
    const service = await tools.connect(state, { deadlineMs: deadline });
    const { map } = await service.readMap(access.network, access.token, null);
    return map !== null && findOwnPeer(map, state) === undefined;
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    // The host's own token is void with the peer. A personal token proves nothing about the peer.
    return isRefused(error) && state.membership.accessToken !== null;
  }
}

/**
 * Requests the network before a repeated join. An unreachable control plane does not stop the join.
 *
 * @throws Refused if the control plane refuses the host's token, or has suspended the host
 */
export async function checkMembership(tools: Pick<Tools, 'connect' | 'warn'>, state: Joined): Promise<void> {
  const access = accessOf(state);
  if (access === null) return;
  const { interface: link, membership } = state;
  const { map, accessToken } = membership;
  try {
    const service = await tools.connect(state, { deadlineMs: deadline });
    await service.readMap(access.network, access.token, map);
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    if (error instanceof Refused && error.status === 403) throw error;
    if (!isRefused(error)) {
      tools.warn(`${error.message}; ${link} uses the last received map of network ${map.name}`);
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
  return error instanceof Refused && (error.status === 401 || error.status === 404 || error.deleted !== null);
}
