import { CannotMove, CannotReport, expectCpnError, NotJoined, NotKept, WrongUsage } from '../../core/errors/index.ts';
import { formatEndpoint } from '../../core/net/endpoint.ts';
import { proxyOf } from '../../core/net/proxy.ts';
import { withAuthorities } from '../../core/net/service-address.ts';
import { toSentence } from '../../core/problems/problem.ts';
import { updated } from '../../core/reconcile/change.ts';
import type { Step } from '../../core/reconcile/step.ts';
import { describeServiceRoute, findServiceRoute } from '../../core/routing/tunnelled-connections.ts';
import type { Joined } from '../../store/state/state.ts';
import { accessOf, confirmListener } from '../access.ts';
import { checkInbound } from '../lan/foreign-drops.ts';
import {
  describeIneffective,
  findDisallowed,
  type OptionChanges,
  type ResolvedChanges,
  resolveEndpoint,
  withChanges,
} from '../networks/option-changes.ts';
import { explainChanges, type PassReport } from '../networks/pass-report.ts';
import { readReported } from '../networks/reconcile.ts';
import { findUnusedMaps } from '../problems/find-problems.ts';
import { applyEvaluation, findUnloaded, save, withoutRules } from '../reconcile/apply.ts';
import { type ConfirmOptions, canBeConfirmed } from '../reconcile/await-confirmation.ts';
import { applyTentatively, mayCutOff, throwIfInterrupted } from '../reconcile/confirm.ts';
import { type Evaluation, evaluateNetwork } from '../reconcile/evaluate-network.ts';
import { locateApi, resolveNames } from '../reconcile/names/resolve-names.ts';
import { preparePorts, syncPorts } from '../reconcile/open-ports.ts';
import { defaultConfirmMs } from '../reconcile/pass.ts';
import { reportSecret } from '../report-secret.ts';
import { refuseUnreadable, selectJoined } from '../select.ts';
import { withExtensions } from '../service-features.ts';
import type { StateTools, Tools } from '../tools.ts';
import { describeMove, findNetworkAt, withMove } from './move-service.ts';

/** Returns the changes on the host, without making them or reporting them. */
export async function planOptions(
  tools: Tools,
  network: string | undefined,
  changes: OptionChanges,
): Promise<PassReport> {
  const state = await selectOne(tools, network);
  for (const text of describeIneffective(state, changes)) tools.warn(text);
  const settled = await resolveEndpoint(tools, state, changes);
  const next = await applyChanges(tools, state, settled);
  warnOfUnusedMaps(tools, next, settled);
  const planned = next.enabled ? await evaluateOptions(tools, next, state) : null;
  const ports =
    planned && arePortsAffected(settled, next, state) ? (await preparePorts(tools, next, planned.actual)).steps : [];
  const made = [...(planned?.changes ?? []), ...ports.flatMap((step) => step.changes)];
  return report(state, planned, [...describeMove(state, next), ...made]);
}

/** True if firewall programs must open another port, or none, or reopen what was closed since. */
function arePortsAffected(
  { options: asked }: ResolvedChanges,
  { options }: Joined,
  { options: before }: Joined,
): boolean {
  const isOther = options.openFirewall !== before.openFirewall || options.listenPort !== before.listenPort;
  return isOther || asked.openFirewall === true;
}

/** Returns the state with the changes, after checking a move of the control plane. */
async function applyChanges(tools: Tools, known: Joined, changes: ResolvedChanges): Promise<Joined> {
  const { refusedDns, ...changed } = withChanges(known, changes);
  // Naming the option requests another attempt.
  const next = refusedDns === undefined || changes.options.dns !== undefined ? changed : { ...changed, refusedDns };
  const { service: named, proxy = known.service.proxy, authorities } = changes;
  if ([named, changes.proxy, authorities].every((each) => each === undefined)) return next;
  const before = named?.url === known.service.url ? known.service.listener : undefined;
  const service = named === undefined ? known.service : await confirmListener(tools, named, before);
  const reached = proxy === undefined ? service : { ...service, proxy };
  const isSecure = reached.url.startsWith('https:');
  const kept = isSecure ? (known.service.authorities ?? null) : null;
  return withMove(
    next,
    await findNetworkAt(tools, known, withAuthorities(reached, authorities === undefined ? kept : authorities)),
  );
}

/** Evaluates changed options. If a port is no longer chosen, the kernel chooses it again. */
async function evaluateOptions(tools: Tools, next: Joined, known: Joined): Promise<Evaluation> {
  const planned = await evaluateNetwork(tools, next, { disallowed: findDisallowed(known, next) });
  const { desired, actual, steps, changes } = planned;
  if (next.service !== known.service) refuseTunnelled(planned);
  const before = actual.device?.listenPort ?? null;
  const isReleased = next.options.listenPort === null && before !== null && before === known.options.listenPort;
  if (!isReleased) return planned;
  const { link } = desired;
  const change = updated('interface', link, { 'listen port': before }, { 'listen port': 'any' }, 'no port is chosen');
  const release: Step = { do: 'configure-device', link, listenPort: 0, peers: [], changes: [change] };
  return { ...planned, steps: [...steps, release], changes: [...changes, change] };
}

/** Refuses a control plane or proxy behind a route of the network. @throws CannotMove */
function refuseTunnelled({ state, desired }: Evaluation): void {
  const { interface: link, service } = state;
  const route = findServiceRoute(desired, locateApi(state));
  if (route === null) return;
  const remedy = `name one that is outside the tunnel, or accept this with "cpn set ${link} --allow-route ${route}"`;
  throw new CannotMove(link, (proxyOf(service) ?? service).url, describeServiceRoute(route), remedy);
}

/**
 * Changes the settings of this host's join. Reports to the control plane come first: a refusal
 * changes nothing here.
 *
 * A change that could cut the host off is reverted unless it is confirmed within `confirmMs`, and
 * after a signal. The control plane then gets the former values again. A new control plane is
 * checked first, and kept only if it sends the map again afterwards.
 *
 * @throws NotKept and Interrupted if it was reverted
 * @throws CannotMove for a control plane in a route of the network
 */
export async function setOptions(
  tools: Tools,
  network: string | undefined,
  asked: OptionChanges,
  confirmMs = defaultConfirmMs,
): Promise<PassReport> {
  const chosen = await selectOne(tools, network);
  const { interface: link } = chosen;
  for (const text of describeIneffective(chosen, asked)) tools.warn(text);
  const changes = await resolveEndpoint(tools, chosen, asked);
  const alone = <T>(work: () => Promise<T>) => tools.store.change(() => tools.store.lock(work));
  const { planned, isReported, moved, ports } = await alone(() =>
    tools.deferSignals(async (signal) => {
      const known = await selectOne(tools, link);
      // Invalid changes are refused before the control plane receives any of them.
      const next = await applyChanges(tools, known, changes);
      throwIfInterrupted(signal);
      const moved = describeMove(known, next);
      const located: Joined = { ...next, resolved: await resolveNames(tools, next) };
      throwIfInterrupted(signal);
      const isReported = await reportChanges(tools, known, changes);
      try {
        throwIfInterrupted(signal);
        const confirming = { withinMs: confirmMs, signal, needsMap: next.service !== known.service };
        const planned = await applyOptions(tools, located, known, confirming);
        const isAsked = planned !== null && arePortsAffected(changes, located, known);
        const ports = isAsked ? await syncPorts(tools, await selectOne(tools, link), planned.actual) : null;
        return { isReported, moved, planned, ports: ports?.changes ?? [] };
      } catch (error) {
        if (isReported) await reportFormer(tools, known, changes);
        throw error;
      }
    }),
  );
  const state = await selectOne(tools, link);
  // The results of removed probes must no longer apply.
  if (changes.dropProbes.length > 0) await tools.store.amendNotes(link, { dead: [], probed: {} });
  if (changes.networkSecret !== undefined) {
    const untold = await reportSecret(tools, state);
    if (untold !== null && untold !== 'unknown') tools.warn(untold.message);
  }
  warnOfPort(tools, chosen, state);
  warnOfUnusedMaps(tools, state, changes);
  if (planned !== null) await checkInbound(tools, { ...planned, state });
  // Forget the map that was held back: it came from the former control plane.
  if (moved.length > 0) await tools.store.amendNotes(link, { held: null });
  const reported = (isReported || moved.length > 0) && state.enabled ? await readReported(tools, link) : [];
  const unloaded = planned && (await findUnloaded(tools, planned));
  const made = withoutRules(planned?.changes ?? [], unloaded);
  return { ...report(chosen, planned, [...moved, ...made, ...ports, ...reported]), failure: unloaded };
}

function warnOfUnusedMaps({ warn }: Pick<Tools, 'warn'>, state: Joined, { addMaps }: ResolvedChanges): void {
  if (addMaps.length > 0) for (const each of findUnusedMaps(state)) warn(toSentence(each));
}

/**
 * Warns that the other peers still dial a port on which this host no longer listens. A port that a
 * router forwards differed before too.
 */
function warnOfPort(
  tools: Pick<Tools, 'warn'>,
  known: Joined,
  { options: { listenPort }, enrollment: { endpoint } }: Joined,
): void {
  if (endpoint === null || listenPort === null || listenPort === endpoint.port) return;
  if (known.options.listenPort !== endpoint.port) return;
  const { interface: link } = known;
  const remedy = `unless a router forwards one to the other, "cpn set ${link} --endpoint ${endpoint.host}:${listenPort}" corrects it`;
  tools.warn(`peers dial ${formatEndpoint(endpoint)}, and ${link} listens on ${listenPort} now; ${remedy}`);
}

/** Keeps the options only if they apply, and peers or the control plane still answer. */
async function applyOptions(
  tools: Tools,
  located: Joined,
  known: Joined,
  confirming: ConfirmOptions,
): Promise<Evaluation | null> {
  if (!located.enabled) {
    await tools.store.write(located);
    return null;
  }
  const planned = await evaluateOptions(tools, located, known);
  const isRisky = mayCutOff(planned.changes);
  const { needsMap = false } = confirming;
  const isJudged = needsMap || (isRisky && (await canBeConfirmed(tools, planned)));
  if (isRisky && !isJudged) {
    tools.warn('neither the control plane nor a peer answers now, so nothing can confirm the change; it is kept');
  }
  if (!isJudged) {
    await save(tools, await applyEvaluation(tools, planned, known), known, planned);
    return planned;
  }
  const { state, isKept } = await applyTentatively(tools, planned, known, confirming);
  if (!isKept) throw new NotKept(known.interface, confirming.withinMs, needsMap ? located.service.url : null);
  await save(tools, state, known, planned);
  return planned;
}

/**
 * @throws WrongUsage if several networks are joined and none is named
 * @throws NotJoined if none is joined
 */
export async function selectOne(tools: StateTools, network: string | undefined): Promise<Joined> {
  const { states, unreadable } = await selectJoined(tools, network);
  const joined = [...states, ...unreadable].map((each) => each.interface);
  // An unreadable network may be meant too.
  if (joined.length > 1) throw new WrongUsage(`name one network; joined: ${joined.join(', ')}`);
  refuseUnreadable(unreadable);
  const [state] = states;
  if (state === undefined) throw new NotJoined('no network is joined; join one with "cpn join"');
  return state;
}

/** Returns whether there was anything to report. */
async function reportChanges(
  tools: Tools,
  state: Joined,
  { name, endpoint }: Pick<ResolvedChanges, 'name' | 'endpoint'>,
): Promise<boolean> {
  if (name === undefined && endpoint === undefined) return false;
  const access = accessOf(state);
  if (access === null) throw new CannotReport(state.service.url, 'it gave this host no token to do it with');
  tools.progress(`reporting to ${state.service.url}`);
  const report = { ...(name !== undefined && { name }), ...(endpoint !== undefined && { endpoint }) };
  await withExtensions(tools, state, { isLocked: true }, (service) =>
    service.describePeer(access.network, state.membership.peer.id, access.token, report),
  );
  return true;
}

/** Reports the former values to the network again after the new options were reverted. */
async function reportFormer(tools: Tools, known: Joined, reported: ResolvedChanges): Promise<void> {
  const previous = {
    ...(reported.name !== undefined && { name: known.membership.peer.name }),
    ...(reported.endpoint !== undefined && { endpoint: known.enrollment.endpoint }),
  };
  const outcome = 'the control plane still has the new name or endpoint of this host, and the host does not';
  await reportChanges(tools, known, previous).catch((error) => {
    tools.warn(`${outcome}: ${expectCpnError(error).message}`);
  });
}

function report(state: Joined, planned: Evaluation | null, changes: PassReport['changes']): PassReport {
  return { ...explainChanges(state, planned), interface: state.interface, changes, unsynced: null, failure: null };
}
