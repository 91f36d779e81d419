import type { Actual } from '../core/actual.ts';
import { WrongUsage } from '../core/errors.ts';
import type { Joined } from '../store/state.ts';
import type { JoinRequest } from './begin-join.ts';
import { isRemoved } from './is-removed.ts';
import { forget, removeFromService } from './leave.ts';
import { isTwin, refuseConflict } from './refuse-conflict.ts';
import { takePlace } from './rejoin.ts';
import { resolveNames } from './resolve.ts';
import { questionOf } from './survey.ts';
import type { Tools } from './tools.ts';

/** A joined network with the addresses of its names, and the host before anything is changed: one look for all that follows. */
export interface Arrival {
  readonly joined: Joined;
  readonly seen: Actual;
  /** Whether it came in the place of a membership that ended. */
  readonly isAgain: boolean;
}

async function lookAround(tools: Tools, state: Joined): Promise<Arrival> {
  const resolved = await resolveNames(tools, state);
  const joined: Joined = resolved === state.resolved ? state : { ...state, resolved };
  if (joined !== state) await tools.store.write(joined);
  return { joined, seen: await tools.host.observe(questionOf(joined)), isAgain: false };
}

/** Puts a membership in the place of one of the same network that ended, and undoes one that cannot stand beside the others. */
export async function settle(
  tools: Tools,
  joined: Joined,
  others: readonly Joined[],
  request: JoinRequest,
  isNew = false,
): Promise<Arrival> {
  const twin = others.find((other) => isTwin(joined, other));
  const arrival = await lookAround(tools, joined);
  if (!isNew && twin === undefined) return arrival;
  const { interface: wanted } = request;
  const isPlace = wanted === null || wanted === twin?.interface;
  const former = twin && isPlace && (await isRemoved(tools, twin)) ? twin : null;
  await refuseConflict(tools, arrival.joined, arrival.seen, former);
  if (former === null && wanted !== null && wanted !== joined.interface) {
    await removeFromService({ ...tools, progress: () => {} }, joined);
    await forget(tools, joined);
    throw new WrongUsage(`${wanted} is of another network than ${joined.membership.map.name}; leave out --interface`);
  }
  if (former === null) return arrival;
  return { ...(await lookAround(tools, await takePlace(tools, arrival.joined, former, request))), isAgain: true };
}
