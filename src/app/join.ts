import type { Actual } from '../core/actual.ts';
import type { SecretTrouble } from '../core/compare-secrets.ts';
import { type CpnError, InvalidValue, NotNamed, Refused, Unreachable, WrongUsage } from '../core/errors.ts';
import { sameFeatures } from '../core/features.ts';
import { isDefaultRoute } from '../core/full-tunnel.ts';
import { explainHosts } from '../core/plan-hosts.ts';
import type { Secret } from '../core/secret.ts';
import { describeAllSkipped } from '../core/skipped-peers.ts';
import type { Joined, State } from '../store/state.ts';
import { explainLocal } from './access.ts';
import { findUnloaded, save } from './apply.ts';
import { awaitHandshake, type Greeting } from './await-handshake.ts';
import { beginJoin, type JoinRequest } from './begin-join.ts';
import { applyKnown } from './confirm.ts';
import { describeClaims } from './describe-claims.ts';
import { describeText } from './describe-text.ts';
import { readFeatures } from './described.ts';
import { lookForTroubles } from './find-secret-troubles.ts';
import { forget } from './leave.ts';
import { usualConfirmation } from './pass.ts';
import { withMembership } from './pins.ts';
import { refuseConflict } from './refuse-conflict.ts';
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
  const { state, unloaded } = await tools.store.lock(async () => {
    const { begun: stored, isNew, disallowed } = await beginJoin(tools, request);
    const begun = await withFeatures(tools, stored);
    const { joined, seen } = isJoined(begun)
      ? await lookAround(tools, begun)
      : await enroll(tools, begun, request, isNew);
    return bringUp(tools, await lend(tools, joined, request.personalToken), { seen, disallowed });
  });
  for (const remark of describeText(state)) tools.warn(remark);
  for (const skipped of describeAllSkipped(state.membership.map.skipped)) tools.warn(skipped);
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

/** A joined network with the addresses of its names, and the host before anything is changed: one look for all that follows. */
interface Arrival {
  readonly joined: Joined;
  readonly seen: Actual;
}

async function lookAround(tools: Tools, state: Joined): Promise<Arrival> {
  const resolved = await resolveNames(tools, state);
  const joined: Joined = resolved === state.resolved ? state : { ...state, resolved };
  if (joined !== state) await tools.store.write(joined);
  return { joined, seen: await tools.host.observe(questionOf(joined)) };
}

async function withFeatures<S extends State>(tools: Tools, state: S): Promise<S> {
  const features = await readFeatures(tools, state);
  if (sameFeatures(features, state.features)) return state;
  const described = { ...state, features };
  await tools.store.write(described);
  return described;
}

async function enroll(tools: Tools, begun: State, request: JoinRequest, isNew: boolean): Promise<Arrival> {
  const { token } = request;
  const state = await foreseeDoubt(tools, begun, request);
  const { name, type, endpoint, idempotencyKey } = state.enrollment;
  const { publicKey } = state.keyPair;
  try {
    tools.progress(`enrolling ${name} at ${state.service.url}`);
    const service = await tools.connect(state);
    const identity = state.identity?.key;
    const secretTag = ownTag(state);
    const beside = { ...(identity && { identity }), ...(secretTag !== null && { secretTag }) };
    const asked = { token, name, type, publicKey, endpoint, idempotencyKey, ...beside };
    const { peer, map, accessToken, text } = await service.enroll(asked);
    const joined = withMembership(
      { ...state, perhapsEnrolled: false },
      { peer, map, accessToken, personalToken: null, ...(text && { text }) },
    );
    await tools.store.write(joined);
    const arrival = await lookAround(tools, joined);
    await refuseConflict(tools, arrival.joined, arrival.seen);
    const sync = { mode: 'poll', lastSuccess: tools.now().toISOString(), error: null } as const;
    await tools.store.amendNotes(state.interface, { sync });
    return arrival;
  } catch (error) {
    if (isNew && isHarmless(error)) await forget(tools, state);
    else if (state.perhapsEnrolled && !begun.perhapsEnrolled && !isDoubtful(error)) await tools.store.write(begun);
    throw error;
  }
}

/**
 * Notes that the enrolment may be carried out without this host learning of it, where the service would carry it out once more. A use
 * of the key is a person's to spend again.
 *
 * @throws WrongUsage where that was so before, and no person asks
 */
async function foreseeDoubt(tools: Tools, state: State, { isUnattended }: JoinRequest): Promise<State> {
  const { service, interface: link, features, perhapsEnrolled } = state;
  if (perhapsEnrolled) {
    const problem = `an earlier enrolment of ${link} at ${service.url} may have been carried out, and its reply was lost`;
    const next = `type "cpn join" with the same key, which takes a further use of it; or "cpn leave ${link}", and join with a new key`;
    if (isUnattended) throw new WrongUsage(`${problem}; ${next}`);
    tools.warn(`${problem}; this one takes a further use of the key`);
  }
  if (perhapsEnrolled || features?.includes('enroll-idempotently')) return state;
  const doubtful: State = { ...state, perhapsEnrolled: true };
  await tools.store.write(doubtful);
  return doubtful;
}

/** True where nothing tells that the enrolment was not carried out. */
function isDoubtful(error: unknown): boolean {
  if (error instanceof Unreachable) return error.perhapsDone;
  return !(error instanceof Refused || error instanceof InvalidValue);
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
  located: Joined,
  options: SurveyOptions,
): Promise<Pick<JoinReport, 'state' | 'unloaded'>> {
  const planned = await survey(tools, located, options);
  const trouble = explainHosts(planned.desired, planned.actual);
  if (trouble !== null) tools.warn(new NotNamed(located.interface, trouble).message);
  tools.progress(`bringing ${located.interface} up as ${located.membership.peer.address}`);
  try {
    const applied = await applyKnown(tools, planned, located, { withinMs: usualConfirmation });
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
