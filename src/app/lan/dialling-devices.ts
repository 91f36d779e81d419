import { CpnError } from '../../core/errors/index.ts';
import { listDialling } from '../../core/routing/topology/via-connectors.ts';
import type { Joined, State } from '../../store/state/state.ts';
import { accessOf } from '../access.ts';
import { isJoined } from '../select.ts';
import type { Tools } from '../tools.ts';

/** Milliseconds for the request to the control plane, before a prompt. */
const deadlineMs = 5_000;

/**
 * Returns the devices that dial only this connector, by the control plane's map: a device may be
 * newer than the last pass. Without a reply, the saved map is used.
 */
export async function findDiallingDevices(tools: Pick<Tools, 'connect'>, state: State): Promise<string[]> {
  if (!isJoined(state) || state.enrollment.type !== 'connector') return [];
  const { map, peer } = state.membership;
  const received = await readNewestMap(tools, state);
  return listDialling(received ?? map, peer).map(({ name }) => name);
}

async function readNewestMap(tools: Pick<Tools, 'connect'>, state: Joined) {
  const access = accessOf(state);
  if (access === null) return null;
  try {
    const service = await tools.connect(state, { deadlineMs });
    return (await service.readMap(access.network, access.token, null)).map;
  } catch (error) {
    if (error instanceof CpnError) return null;
    throw error;
  }
}
