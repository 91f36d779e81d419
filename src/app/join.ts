import type { Actual } from '../core/actual.ts';
import type { SecretTrouble } from '../core/compare-secrets.ts';
import { type CpnError, Interrupted, InvalidValue, NotNamed, Refused, Unreachable } from '../core/errors.ts';
import { isDefaultRoute } from '../core/full-tunnel.ts';
import { explainHosts } from '../core/plan-hosts.ts';
import type { Secret } from '../core/secret.ts';
import type { Joined, State } from '../store/state.ts';
import { explainLocal } from './access.ts';
import { findUnloaded, save } from './apply.ts';
import { awaitHandshake, type Greeting } from './await-handshake.ts';
import { beginJoin, type JoinRequest } from './begin-join.ts';
import { applyKnown } from './confirm.ts';
import { describeClaims } from './describe-claims.ts';
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
  const alone = <T>(work: () => Promise<T>) => tools.store.change(() => tools.store.lock(work));
  const { state, unloaded } = await alone(async () => {
    const { begun, before, disallowed } = await beginJoin(tools, request);
    const finish = async ({ joined, seen }: Arrival, signal?: AbortSignal) =>
      bringUp(tools, await lend(tools, joined, request.personalToken), { seen, disallowed }, signal);
    if (!isJoined(begun)) return finish(await enroll(tools, begun, request.token, before === null));
    return tools.deferSignals(async (signal) => {
      try {
        return await finish(await lookAround(tools, begun), signal);
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
  const { receipt } = (await tools.store.read(before.interface)) ?? before;
  await tools.store.write({ ...before, receipt });
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

async function enroll(tools: Tools, state: State, token: Secret, isNew: boolean): Promise<Arrival> {
  const { name, type, endpoint, idempotencyKey } = state.enrollment;
  const { publicKey } = state.keyPair;
  try {
    tools.progress(`enrolling ${name} at ${state.service.url}`);
    const service = await tools.connect(state.service);
    const identity = state.identity?.key;
    const secretTag = ownTag(state);
    const beside = { ...(identity && { identity }), ...(secretTag !== null && { secretTag }) };
    const asked = { token, name, type, publicKey, endpoint, idempotencyKey, ...beside };
    const { peer, map, accessToken } = await service.enroll(asked);
    const joined = withMembership(state, { peer, map, accessToken, personalToken: null });
    await tools.store.write(joined);
    const arrival = await lookAround(tools, joined);
    await refuseConflict(tools, arrival.joined, arrival.seen);
    const sync = { mode: 'poll', lastSuccess: tools.now().toISOString(), error: null } as const;
    await tools.store.amendNotes(state.interface, { sync });
    return arrival;
  } catch (error) {
    if (isNew && isHarmless(error)) await forget(tools, state);
    throw error;
  }
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
  signal?: AbortSignal,
): Promise<Pick<JoinReport, 'state' | 'unloaded'>> {
  const planned = await survey(tools, located, options);
  const trouble = explainHosts(planned.desired, planned.actual);
  if (trouble !== null) tools.warn(new NotNamed(located.interface, trouble).message);
  tools.progress(`bringing ${located.interface} up as ${located.membership.peer.address}`);
  try {
    const applied = await applyKnown(tools, planned, located, {
      withinMs: usualConfirmation,
      ...(signal && { signal }),
    });
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
