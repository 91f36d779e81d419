import type { SecretTrouble } from '../core/compare-secrets.ts';
import { type CpnError, Interrupted, NotNamed } from '../core/errors.ts';
import { sameFeatures } from '../core/features.ts';
import { isDefaultRoute } from '../core/full-tunnel.ts';
import { explainHosts } from '../core/plan-hosts.ts';
import { type RouteReport, remedyOfRefused } from '../core/route-report.ts';
import type { Secret } from '../core/secret.ts';
import { describeAllSkipped } from '../core/skipped-peers.ts';
import type { Joined, State } from '../store/state.ts';
import { explainLocal, lend } from './access.ts';
import { apply, findUnloaded, save } from './apply.ts';
import { awaitHandshake, type Greeting } from './await-handshake.ts';
import { beginJoin, type JoinRequest } from './begin-join.ts';
import { applyKnown, throwIfInterrupted } from './confirm.ts';
import { describeClaims } from './describe-claims.ts';
import { describeText } from './describe-text.ts';
import { readFeatures } from './described.ts';
import { enrollHost, isHarmless } from './enroll-host.ts';
import { lookForTroubles } from './find-secret-troubles.ts';
import { forget } from './leave.ts';
import { usualConfirmation } from './pass.ts';
import { withMembership } from './pins.ts';
import { findOthers } from './rejoin.ts';
import { isJoined } from './select.ts';
import { type Arrival, settle } from './settle.ts';
import { type SurveyOptions, survey } from './survey.ts';
import { takeBack } from './take-back.ts';
import { tellSecret } from './tell-secret.ts';
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
    const { begun: stored, before, disallowed } = await beginJoin(tools, request);
    const finish = async (arrival: Arrival, signal?: AbortSignal) => {
      const joined = await keepToken(tools, arrival.joined, request.personalToken);
      return bringUp(tools, { ...arrival, joined }, disallowed, signal);
    };
    if (!isJoined(stored))
      return finish(await enroll(tools, await withFeatures(tools, stored), request, before === null));
    return tools.deferSignals(async (signal) => {
      try {
        const begun = await withFeatures(tools, stored);
        throwIfInterrupted(signal);
        return await finish(await settle(tools, begun, await findOthers(tools, begun), request), signal);
      } catch (error) {
        if (error instanceof Interrupted && before !== null) await restore(tools, before);
        throw error;
      }
    });
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

/** Writes down again what a join was before it was repeated, but for what was learned of the host and the service meanwhile. */
async function restore(tools: Tools, before: State): Promise<void> {
  const state = await tools.store.read(before.interface);
  if (state !== null) await tools.store.write({ ...before, receipt: state.receipt, features: state.features });
}

/** What the service describes is read anew with each join; where that fails, what was known holds. */
async function withFeatures<S extends State>(tools: Tools, state: S): Promise<S> {
  const features = await readFeatures(tools, state);
  if (sameFeatures(features, state.features)) return state;
  const described = { ...state, features };
  await tools.store.write(described);
  return described;
}

async function enroll(tools: Tools, begun: State, request: JoinRequest, isNew: boolean): Promise<Arrival> {
  try {
    const others = await findOthers(tools, begun);
    const { state, enrolled } = await enrollHost(tools, begun, request, others);
    const { peer, map, accessToken, text } = enrolled;
    const membership = { peer, map, accessToken, personalToken: null, ...(text && { text }) };
    const joined = withMembership({ ...state, perhapsEnrolled: false }, membership);
    await tools.store.write(joined);
    const arrival = await settle(tools, joined, others, request, true);
    const sync = { mode: 'poll', lastSuccess: tools.now().toISOString(), error: null, refused: null } as const;
    await tools.store.amendNotes(arrival.joined.interface, { sync, held: null });
    return arrival;
  } catch (error) {
    if (isNew && isHarmless(error)) await forget(tools, begun);
    throw error;
  }
}

/** Keeps a person's token where the host has none of its own, and says where there is none at all. */
async function keepToken(tools: Tools, state: Joined, personalToken: Secret | null): Promise<Joined> {
  const lent = lend(state, personalToken);
  if (lent !== state) await tools.store.write(lent);
  const local = explainLocal(lent);
  if (local !== null) tools.warn(local);
  return lent;
}

/** A route that the guard refused; one that a person does not accept is no surprise. */
function isSurprise({ state, reason }: RouteReport): boolean {
  return state === 'refused' && reason !== 'not accepted';
}

function describeLeftOut(route: RouteReport, link: string): string {
  const remedy = remedyOfRefused(route, link);
  return `${route.prefix} does not lead into ${link}: it ${route.reason}${remedy === null ? '' : `; ${remedy}`}`;
}

async function bringUp(
  tools: Tools,
  { joined: located, seen, isAgain }: Arrival,
  disallowed: SurveyOptions['disallowed'],
  signal?: AbortSignal,
): Promise<Pick<JoinReport, 'state' | 'unloaded'>> {
  const planned = await survey(tools, located, { seen, ...(disallowed && { disallowed }) });
  const trouble = explainHosts(planned.desired, planned.actual);
  for (const route of planned.desired.report.filter(isSurprise)) tools.warn(describeLeftOut(route, located.interface));
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
