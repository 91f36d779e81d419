import type { Options } from '../core/model.ts';
import { holdPins } from '../core/pins.ts';
import type { Joined, State } from '../store/state.ts';
import { fixPort, type JoinRequest } from './begin-join.ts';
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
    options: adoptOptions(former, { named, ...request }, endpoint),
    networkSecret: named.has('networkSecret') ? request.networkSecret : former.networkSecret,
    drained: former.drained,
    enrollment: {
      ...enrollment,
      name: named.has('name') ? request.name : before.name,
      type: named.has('type') ? request.type : before.type,
      endpoint,
    },
  };
}

function adoptOptions(
  { options, enrollment }: Joined,
  { named, options: asked }: Pick<JoinRequest, 'named' | 'options'>,
  endpoint: State['enrollment']['endpoint'],
): Options {
  const given = Object.entries(asked).filter(([name]) => named.has(name as keyof Options));
  const isFollowing = options.listenPort === (enrollment.endpoint?.port ?? null);
  const kept: Options = { ...options, ...(isFollowing && { listenPort: null }), ...Object.fromEntries(given) };
  return fixPort(kept, endpoint);
}

/** Puts a new membership in the place of one that ended, on its interface; what was known of the peers stays known. */
export async function takePlace(tools: Tools, joined: Joined, former: Joined): Promise<Joined> {
  const { membership, receipt } = joined;
  const made = new Set(former.receipt.map((entry) => JSON.stringify(entry)));
  const next: Joined = {
    ...joined,
    interface: former.interface,
    createdAt: former.createdAt,
    labels: joined.options.hosts ? former.labels : [],
    receipt: [...former.receipt, ...receipt.filter((entry) => !made.has(JSON.stringify(entry)))],
  };
  const { map, pins } = holdPins(membership.map, former.pins, holderOf(next));
  await tools.store.write({ ...next, membership: { ...membership, map }, pins });
  await tools.store.forget(joined.interface, []);
  return { ...next, membership: { ...membership, map }, pins };
}
