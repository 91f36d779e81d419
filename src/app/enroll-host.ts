import type { Enrolled } from '../api/service.ts';
import { InvalidValue, Refused, Unreachable, WrongUsage } from '../core/errors.ts';
import type { Feature } from '../core/features.ts';
import { isDefaultRoute } from '../core/full-tunnel.ts';
import type { Id } from '../core/model.ts';
import type { Secret } from '../core/secret.ts';
import type { Joined, State } from '../store/state.ts';
import type { JoinRequest } from './begin-join.ts';
import { isRemoved } from './is-removed.ts';
import { forget } from './leave.ts';
import { describeTwin } from './refuse-conflict.ts';
import { adopt } from './rejoin.ts';
import { ownTag } from './tell-secret.ts';
import type { Tools } from './tools.ts';

/** A join whose enrolment was answered, and the answer. */
interface Answered {
  readonly state: State;
  readonly enrolled: Enrolled;
}

/**
 * Enrols with the key. A service that describes `Current-Networks` refuses a key for a network that this host is in before its use is
 * taken; where the host was removed from that network, it enrols as what it was there.
 *
 * @throws WrongUsage where the host is still in the network, and nothing of the join is left; also where an earlier enrolment may have
 *   been carried out, and no person decides
 */
export async function enrollHost(
  tools: Tools,
  begun: State,
  request: JoinRequest,
  others: readonly Joined[],
): Promise<Answered> {
  remindOfDoubt(tools, begun, request);
  const current = others.flatMap(({ membership: { map } }) => map.id ?? []);
  const enrolled = await enrollUnlessIn(tools, begun, request.token, current);
  if (enrolled !== null) return { state: begun, enrolled };
  for (const former of others) {
    if (!(await isRemoved(tools, former))) continue;
    const { map } = former.membership;
    const state = await beginAgain(tools, begun, former, request);
    const without = current.filter((id) => id !== map.id);
    const again = await enrollUnlessIn(tools, state, request.token, without);
    if (again !== null) return { state, enrolled: again };
  }
  await forget(tools, begun);
  const [only, ...more] = others;
  if (only && more.length === 0) throw new WrongUsage(describeTwin(only));
  const links = others.map((other) => other.interface).join(', ');
  throw new WrongUsage(
    `this host is in the network of this key already, as one of ${links}; "cpn leave" that one first`,
  );
}

/** A join as the same host as in a network that it was removed from; saved, once the host can do that too. */
async function beginAgain(tools: Tools, begun: State, former: Joined, request: JoinRequest): Promise<State> {
  const { membership, interface: link } = former;
  const { name } = membership.map;
  if (request.interface !== null && request.interface !== link) {
    await forget(tools, begun);
    throw new WrongUsage(
      `this host was in network ${name} as ${link}; leave out --interface, or "cpn leave ${link}" first`,
    );
  }
  tools.progress(`joining network ${name} again, from which ${link} was removed`);
  const state = await adopt(tools, begun, former, request);
  const forwarding = state.enrollment.type === 'connector';
  const fullTunnel = state.options.allowRoutes.some(isDefaultRoute);
  await tools.host.check({ firewall: forwarding, forwarding, fullTunnel });
  await tools.store.write(state);
  return state;
}

/**
 * Enrols once. While the reply is outstanding the state says that the enrolment may have been carried out, where the service would carry
 * it out once more.
 *
 * @param current the networks that this host is in
 * @returns null where the key is for one of these, and no use of it was taken
 */
async function enrollUnlessIn(
  tools: Tools,
  state: State,
  token: Secret,
  current: readonly Id[],
): Promise<Enrolled | null> {
  const { name, type, endpoint, idempotencyKey } = state.enrollment;
  const { publicKey } = state.keyPair;
  const isDoubtNew = !state.perhapsEnrolled && !describes(state, 'enroll-idempotently');
  const currentNetworks = describes(state, 'enroll-current-networks') ? current : [];
  if (isDoubtNew) await tools.store.write({ ...state, perhapsEnrolled: true });
  try {
    tools.progress(`enrolling ${name} at ${state.service.url}`);
    const service = await tools.connect(state);
    const identity = state.identity?.key;
    const secretTag = ownTag(state);
    const beside = { ...(identity && { identity }), ...(secretTag !== null && { secretTag }), currentNetworks };
    return await service.enroll({ token, name, type, publicKey, endpoint, idempotencyKey, ...beside });
  } catch (error) {
    if (isDoubtNew && !isDoubtful(error)) await tools.store.write(state);
    if (currentNetworks.length > 0 && error instanceof Refused && error.status === 409) return null;
    throw error;
  }
}

function describes({ features }: State, feature: Feature): boolean {
  return features?.includes(feature) === true;
}

/**
 * Says that an earlier enrolment may have been carried out without this host learning of it. A use of the key is a person's to spend
 * again.
 *
 * @throws WrongUsage where no person asks
 */
function remindOfDoubt(tools: Tools, state: State, { isUnattended }: JoinRequest): void {
  const { service, interface: link, perhapsEnrolled } = state;
  if (!perhapsEnrolled) return;
  const problem = `an earlier enrolment of ${link} at ${service.url} may have been carried out, and its reply was lost`;
  const next = `type "cpn join" with the same key, which takes a further use of it; or "cpn leave ${link}", and join with a new key`;
  if (isUnattended) throw new WrongUsage(`${problem}; ${next}`);
  tools.warn(`${problem}; this one takes a further use of the key`);
}

/** True where nothing tells that the enrolment was not carried out. */
function isDoubtful(error: unknown): boolean {
  if (error instanceof Unreachable) return error.perhapsDone;
  return !(error instanceof Refused || error instanceof InvalidValue);
}

/** True when nothing can come of new keys, because nothing was done with them. Keys of an earlier attempt may be enrolled. */
export function isHarmless(error: unknown): boolean {
  if (error instanceof Refused) return !error.repeated;
  return error instanceof InvalidValue || (error instanceof Unreachable && !error.delivered);
}
