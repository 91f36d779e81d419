import { holdPins } from '../core/pins.ts';
import type { Joined, State } from '../store/state.ts';
import type { JoinRequest } from './begin-join.ts';
import { keepOptions } from './kept-options.ts';
import { findOwnEndpoint } from './own-endpoint.ts';
import { holderOf } from './pins.ts';
import { isJoined } from './select.ts';
import type { Tools } from './tools.ts';

/** The networks that this host joined through the same service. */
export async function findOthers(tools: Tools, { interface: link, service }: State): Promise<readonly Joined[]> {
  const { states } = await tools.store.list();
  return states.filter(isJoined).filter((other) => other.interface !== link && other.service.url === service.url);
}

/** A join that was begun, as the same host as in a network that it was removed from: with its options, but for those asked for. */
export async function adopt(
  tools: Tools,
  begun: State,
  former: Joined,
  { named, ...request }: JoinRequest,
): Promise<State> {
  const { enrollment } = begun;
  const before = former.enrollment;
  const endpoint = named.has('endpoint') ? await findOwnEndpoint(tools, request) : before.endpoint;
  return {
    ...begun,
    ...keepOptions(former, { named, ...request }, endpoint),
    drained: former.drained,
    enrollment: {
      ...enrollment,
      name: named.has('name') ? request.name : before.name,
      type: named.has('type') ? request.type : before.type,
      endpoint,
    },
  };
}

/** Puts a new membership in the place of one that ended, on its interface; what was known of the peers stays known. */
export async function takePlace(tools: Tools, joined: Joined, former: Joined, request: JoinRequest): Promise<Joined> {
  const { membership, receipt, enrollment } = joined;
  // A service that does not know which networks a host is in enrolled it before that was known.
  const kept = keepOptions(former, request, enrollment.endpoint);
  const made = new Set(former.receipt.map((entry) => JSON.stringify(entry)));
  const next: Joined = {
    ...joined,
    ...kept,
    drained: former.drained,
    interface: former.interface,
    createdAt: former.createdAt,
    labels: kept.options.hosts ? former.labels : [],
    receipt: [...former.receipt, ...receipt.filter((entry) => !made.has(JSON.stringify(entry)))],
  };
  const { map, pins } = holdPins(membership.map, former.pins, holderOf(next));
  await tools.store.write({ ...next, membership: { ...membership, map }, pins });
  await tools.store.forget(joined.interface, []);
  return { ...next, membership: { ...membership, map }, pins };
}
