import { WrongUsage } from '../../core/errors/index.ts';
import { type Endpoint, formatEndpoint } from '../../core/net/endpoint.ts';
import type { State } from '../../store/state/state.ts';
import { withPersonalToken } from '../access.ts';
import { findDisallowed } from '../networks/option-changes.ts';
import { findOwnEndpoint } from '../networks/own-endpoint.ts';
import { withOptions } from '../pins.ts';
import { cleanUp, deleteState } from '../reconcile/cleanup.ts';
import { withoutDeletion } from '../reconcile/deleted-network.ts';
import { refuseUnfixedPort } from '../reconcile/open-ports.ts';
import { isJoined } from '../select.ts';
import type { Tools } from '../tools.ts';
import { checkMembership } from './check-membership.ts';
import { checkPort } from './create-state.ts';
import { hashToken, type JoinRequest, type PendingJoin } from './join-request.ts';
import { keepOptions } from './kept-options.ts';

/** Returns the state of a join with the same key at the same control plane, or null. */
export async function findEarlierJoin(
  tools: Tools,
  request: JoinRequest,
  states: readonly State[],
): Promise<State | null> {
  const tokenHash = hashToken(request);
  const [earlier, ...leftovers] = states
    .filter(({ enrollment, service }) => enrollment.tokenHash === tokenHash && service.url === request.service.url)
    .toSorted((one, other) => (one.createdAt < other.createdAt ? -1 : 1));
  // `replaceMembership` moves a new membership into the state of the earlier one, and then deletes
  // the new state. A crash in between leaves both.
  for (const each of leftovers) await deleteState(tools, await cleanUp(tools, each));
  return earlier ?? null;
}

/**
 * Applies the request to the state of an earlier join, and saves it.
 *
 * @throws WrongUsage if the request names a setting that a repeated join does not change
 */
export async function resumeJoin(
  tools: Tools,
  earlier: State,
  request: JoinRequest,
  states: readonly State[],
): Promise<PendingJoin> {
  const { interface: link } = earlier;
  if (request.interface !== null && request.interface !== link) {
    throw new WrongUsage(`this key has joined as ${link} already; leave out --interface, or "cpn leave ${link}" first`);
  }
  await refuseChanges(tools, earlier, request);
  tools.progress(`continuing the join of ${link}`);
  const { options, networkSecret } = keepOptions(earlier, request, earlier.enrollment.endpoint);
  refuseUnfixedPort(options);
  const wanted = withoutDeletion(withOptions(earlier, options));
  const state: State = { ...wanted, service: request.service, networkSecret, enabled: true };
  if (isJoined(earlier)) await checkMembership(tools, withPersonalToken(earlier, request.personalToken));
  else await checkPort(tools, state, states);
  await tools.store.write(state);
  // The results of removed probes must no longer apply.
  if (request.named.has('probes')) await tools.store.amendNotes(link, { dead: [], probed: {} });
  return { state, before: earlier, disallowed: findDisallowed(earlier, state) };
}

/**
 * Refuses changes to what the control plane already has: name, type and endpoint.
 *
 * @throws WrongUsage if the request names another value
 */
async function refuseChanges(tools: Pick<Tools, 'host'>, earlier: State, request: JoinRequest): Promise<void> {
  const { interface: link, enrollment } = earlier;
  const { named } = request;
  const refuse = (flag: string, given: string, present: string) => {
    if (given === present) return;
    const isSettable = isJoined(earlier) && flag !== '--type';
    const remedy = isSettable
      ? `"cpn set ${link} ${flag} ${given}" changes it`
      : `to change it, "cpn leave ${link}" and join with a new key`;
    throw new WrongUsage(
      `the join of ${link} with this key has ${flag} ${present}, not ${given}; leave out ${flag}; ${remedy}`,
    );
  };
  if (named.has('type')) refuse('--type', request.type, enrollment.type);
  if (named.has('name')) refuse('--name', request.name, enrollment.name);
  if (!named.has('endpoint')) return;
  const { options } = keepOptions(earlier, request, enrollment.endpoint);
  const endpoint = await findOwnEndpoint(tools, { ...request, options });
  refuse('--endpoint', describeEndpoint(endpoint), describeEndpoint(enrollment.endpoint));
}

function describeEndpoint(endpoint: Endpoint | null): string {
  return endpoint === null ? 'none' : formatEndpoint(endpoint);
}
