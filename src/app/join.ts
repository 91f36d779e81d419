import type { Actual } from '../core/actual.ts';
import type { SecretTrouble } from '../core/compare-secrets.ts';
import {
  type CpnError,
  Interrupted,
  InvalidValue,
  NotNamed,
  Refused,
  Unreachable,
  WrongUsage,
} from '../core/errors.ts';
import { isDefaultRoute } from '../core/full-tunnel.ts';
import { explainHosts } from '../core/plan-hosts.ts';
import type { Secret } from '../core/secret.ts';
import type { Joined, State } from '../store/state.ts';
import { explainLocal } from './access.ts';
import { apply, findUnloaded, save } from './apply.ts';
import { awaitHandshake, type Greeting } from './await-handshake.ts';
import { beginJoin, type JoinRequest } from './begin-join.ts';
import { applyKnown } from './confirm.ts';
import { describeClaims } from './describe-claims.ts';
import { lookForTroubles } from './find-secret-troubles.ts';
import { isRemoved } from './is-removed.ts';
import { forget, removeFromService } from './leave.ts';
import { usualConfirmation } from './pass.ts';
import { withMembership } from './pins.ts';
import { describeTwin, isTwin, refuseConflict } from './refuse-conflict.ts';
import { adopt, findOthers, takePlace } from './rejoin.ts';
import { resolveNames } from './resolve.ts';
import { isJoined } from './select.ts';
import { questionOf, type SurveyOptions, survey } from './survey.ts';
import { takeBack } from './take-back.ts';
import { ownTag, tellSecret } from './tell-secret.ts';
import type { Tools } from './tools.ts';
import { tellLoading } from './withdraw.ts';

export interface JoinReport extends Greeting {
  readonly state: Joined;
  /** What of the network secret keeps a handshake away; none where a peer answered. */
  readonly troubles: readonly SecretTrouble[];
  /** What keeps the packet rules from being loaded; null for nothing. The tunnel is up all the same. */
  readonly unloaded: CpnError | null;
}

/**
 * Joins a network: key pair on disk, enrolment, wg-quick file, interface, and a first handshake where one is to be had.
 * Every step is saved before the next, so that the same call again, with the same key, goes on where this one ended and
 * comes to the same peer and address.
 */
export async function joinNetwork(tools: Tools, request: JoinRequest): Promise<JoinReport> {
  tools.progress('checking this host');
  const forwarding = request.type === 'connector';
  const fullTunnel = request.options.allowRoutes.some(isDefaultRoute);
  await tools.host.check({ firewall: forwarding, forwarding, fullTunnel });
  const alone = <T>(work: () => Promise<T>) => tools.store.change(() => tools.store.lock(work));
  const { state, unloaded } = await alone(async () => {
    const { begun, before, disallowed } = await beginJoin(tools, request);
    const finish = async (arrival: Arrival, signal?: AbortSignal) => {
      const joined = await lend(tools, arrival.joined, request.personalToken);
      return bringUp(tools, { ...arrival, joined }, disallowed, signal);
    };
    if (!isJoined(begun)) return finish(await enroll(tools, begun, request, before === null));
    return tools.deferSignals(async (signal) => {
      try {
        return await finish(await settle(tools, begun, await findOthers(tools, begun), request), signal);
      } catch (error) {
        if (error instanceof Interrupted && before !== null) await restore(tools, before);
        throw error;
      }
    });
  });
  for (const claim of describeClaims(state)) tools.warn(claim);
  if (unloaded !== null) await tellLoading(tools, state);
  const untold = await tellSecret(tools, state);
  if (untold !== null && untold !== 'unknown') tools.warn(untold.message);
  const greeting = await awaitHandshake(tools, state, request.patience);
  return {
    state,
    unloaded,
    ...greeting,
    troubles: greeting.handshake === true ? [] : await lookForTroubles(tools, state),
  };
}

/** Writes down again what a join was before it was repeated; the receipt may have grown meanwhile, and stays. */
async function restore(tools: Tools, before: State): Promise<void> {
  const state = await tools.store.read(before.interface);
  if (state !== null) await tools.store.write({ ...before, receipt: state.receipt });
}

/** A joined network with the addresses of its names, and the host before anything is changed: one look for all that follows. */
interface Arrival {
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

async function enroll(tools: Tools, begun: State, request: JoinRequest, isNew: boolean): Promise<Arrival> {
  try {
    const others = await findOthers(tools, begun);
    const { state, enrolled } = await askToEnroll(tools, begun, request, others);
    const { peer, map, accessToken } = enrolled;
    const joined = withMembership(state, { peer, map, accessToken, personalToken: null });
    await tools.store.write(joined);
    const arrival = await settle(tools, joined, others, request, true);
    const sync = { mode: 'poll', lastSuccess: tools.now().toISOString(), error: null } as const;
    await tools.store.amendNotes(arrival.joined.interface, { sync, held: null });
    return arrival;
  } catch (error) {
    if (isNew && isHarmless(error)) await forget(tools, begun);
    throw error;
  }
}

/** Puts a membership in the place of one of the same network that ended, and undoes one that cannot stand beside the others. */
async function settle(
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

/**
 * Enrols with the key. A key for a network that this host is in is refused before its use is taken; where the host was removed from that
 * network, it enrols as what it was there.
 *
 * @throws WrongUsage where the host is still in the network, and nothing of the join is left
 */
async function askToEnroll(tools: Tools, begun: State, request: JoinRequest, others: readonly Joined[]) {
  const current = others.flatMap(({ membership: { map } }) => map.id ?? []);
  try {
    return { state: begun, enrolled: await enrollAs(tools, begun, request.token, current) };
  } catch (error) {
    if (!isInNetwork(error)) throw error;
  }
  for (const former of others) {
    if (!(await isRemoved(tools, former))) continue;
    const { membership, interface: link } = former;
    if (request.interface !== null && request.interface !== link) {
      await forget(tools, begun);
      throw new WrongUsage(
        `this host was in network ${membership.map.name} as ${link}; leave out --interface, or "cpn leave ${link}" first`,
      );
    }
    tools.progress(`joining network ${membership.map.name} again, from which ${link} was removed`);
    const state = await adopt(tools, begun, former, request);
    const forwarding = state.enrollment.type === 'connector';
    await tools.host.check({
      ...{ firewall: forwarding, forwarding },
      fullTunnel: state.options.allowRoutes.some(isDefaultRoute),
    });
    await tools.store.write(state);
    try {
      const without = current.filter((id) => id !== membership.map.id);
      return { state, enrolled: await enrollAs(tools, state, request.token, without) };
    } catch (error) {
      if (!isInNetwork(error)) throw error;
    }
  }
  await forget(tools, begun);
  const [only, ...more] = others;
  if (only && more.length === 0) throw new WrongUsage(describeTwin(only));
  const links = others.map((other) => other.interface).join(', ');
  throw new WrongUsage(
    `this host is in the network of this key already, as one of ${links}; "cpn leave" that one first`,
  );
}

/** True of the refusal of a key that is for one of the networks that this host is in. */
function isInNetwork(error: unknown): boolean {
  return error instanceof Refused && error.status === 409;
}

async function enrollAs(tools: Tools, state: State, token: Secret, currentNetworks: readonly number[]) {
  const { name, type, endpoint, idempotencyKey } = state.enrollment;
  const { publicKey } = state.keyPair;
  tools.progress(`enrolling ${name} at ${state.service.url}`);
  const service = await tools.connect(state.service);
  const identity = state.identity?.key;
  const secretTag = ownTag(state);
  const beside = { ...(identity && { identity }), ...(secretTag !== null && { secretTag }), currentNetworks };
  return service.enroll({ token, name, type, publicKey, endpoint, idempotencyKey, ...beside });
}

/** True when nothing can come of new keys, because nothing was done with them. Keys of an earlier attempt may be enrolled. */
function isHarmless(error: unknown): boolean {
  if (error instanceof Refused) return !error.repeated;
  return error instanceof InvalidValue || (error instanceof Unreachable && !error.delivered);
}

/** Keeps a person's token where the host has none of its own, and says where there is none at all. */
async function lend(tools: Tools, state: Joined, personalToken: Secret | null): Promise<Joined> {
  const { membership } = state;
  const isNeeded = membership.accessToken === null && personalToken !== null;
  const lent: Joined = isNeeded ? { ...state, membership: { ...membership, personalToken } } : state;
  if (isNeeded) await tools.store.write(lent);
  const local = explainLocal(lent);
  if (local !== null) tools.warn(local);
  return lent;
}

async function bringUp(
  tools: Tools,
  { joined: located, seen, isAgain }: Arrival,
  disallowed: SurveyOptions['disallowed'],
  signal?: AbortSignal,
): Promise<Pick<JoinReport, 'state' | 'unloaded'>> {
  const planned = await survey(tools, located, { seen, ...(disallowed && { disallowed }) });
  const trouble = explainHosts(planned.desired, planned.actual);
  if (trouble !== null) tools.warn(new NotNamed(located.interface, trouble).message);
  tools.progress(`bringing ${located.interface} up as ${located.membership.peer.address}`);
  try {
    const confirming = { withinMs: usualConfirmation, ...(signal && { signal }) };
    // Of a membership that ended there is no peer that could confirm.
    const applied = isAgain
      ? await apply(tools, planned, located)
      : await applyKnown(tools, planned, located, confirming);
    tools.progress(`writing ${tools.store.configPath(located.interface)}`);
    await save(tools, applied, located, planned);
    return { state: applied, unloaded: await findUnloaded(tools, planned) };
  } catch (error) {
    // A tunnel that was there before is somebody's connection: better half changed than gone.
    const isNew = planned.actual.link === null;
    if (isNew) await takeBack(tools, (await tools.store.read(located.interface)) ?? located);
    throw error;
  }
}
