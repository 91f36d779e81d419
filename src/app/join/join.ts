import { type CpnError, HostsFileNotUpdated, Interrupted, NoUsablePeer } from '../../core/errors/index.ts';
import type { SecretMismatch } from '../../core/health/compare-secrets.ts';
import { sameFeatures } from '../../core/map/features.ts';
import { ownKeys } from '../../core/map/own-peer.ts';
import { isDefaultRoute } from '../../core/net/cidr.ts';
import { isSameProxy, proxyOf } from '../../core/net/proxy.ts';
import type { ServiceAddress } from '../../core/net/service-address.ts';
import { toSentence } from '../../core/problems/problem.ts';
import { explainHosts } from '../../core/reconcile/plan-hosts.ts';
import { remedyOfRefused } from '../../core/routing/route-report.ts';
import { describeServiceRoute, findServiceRoute } from '../../core/routing/tunnelled-connections.ts';
import type { Joined, State } from '../../store/state/state.ts';
import { confirmListener, findNoAccess, withPersonalToken } from '../access.ts';
import { checkInbound } from '../lan/foreign-drops.ts';
import { reportLoading } from '../lan/withdraw.ts';
import { finishLeaving, listFormer } from '../networks/former-networks.ts';
import { checkSecrets } from '../problems/find-mismatches.ts';
import { findConfigRemarks, findPinProblems, findSkippedPeers, findUnusedMaps } from '../problems/find-problems.ts';
import { applyEvaluation, findUnloaded, save } from '../reconcile/apply.ts';
import { cleanUp } from '../reconcile/cleanup.ts';
import { applyKnownMap, throwIfInterrupted } from '../reconcile/confirm.ts';
import { findDeletion } from '../reconcile/deleted-network.ts';
import { type Evaluation, evaluateNetwork } from '../reconcile/evaluate-network.ts';
import { locateApi } from '../reconcile/names/resolve-names.ts';
import { syncPorts } from '../reconcile/open-ports.ts';
import { defaultConfirmMs } from '../reconcile/pass.ts';
import { reportSecret } from '../report-secret.ts';
import { isJoined, refuseUnreadable } from '../select.ts';
import { readFeatures } from '../service-features.ts';
import type { StateTools, Tools } from '../tools.ts';
import { awaitHandshake, type HandshakeResult } from './await-handshake.ts';
import { createState } from './create-state.ts';
import { enrollHost } from './enroll-host.ts';
import type { JoinRequest, PendingJoin } from './join-request.ts';
import { findOtherNetworks } from './moved-networks.ts';
import { type EnrolledNetwork, resolveConflicts } from './resolve-conflicts.ts';
import { findEarlierJoin, resumeJoin } from './resume-join.ts';

export interface JoinReport extends HandshakeResult {
  readonly state: Joined;
  /** Differences of network secrets that prevent a handshake; empty if a peer answered. */
  readonly secretMismatches: readonly SecretMismatch[];
  /** Why the packet rules do not load; null if they do. The tunnel is up in both cases. */
  readonly unloaded: CpnError | null;
  /** The proxy of the environment that the daemon also uses; null for none. */
  readonly savedProxy: string | null;
}

/**
 * Joins a network. Each phase saves its result before the next one starts. The same call again,
 * with the same key, continues where this one ended, and gets the same peer and address.
 */
export async function joinNetwork(tools: Tools, asked: JoinRequest): Promise<JoinReport> {
  const reach = await keepReach(tools, asked);
  const service = reach.listener === undefined ? await confirmListener(tools, reach, undefined) : reach;
  await check(tools, { ...asked, service });
  const describe = beginToDescribe(tools, { ...asked, service });
  const alone = <T>(work: () => Promise<T>) => tools.store.change(() => tools.store.lock(work));
  const { applied, request } = await alone(async () => {
    const { listener } = service;
    // Another command may have changed the rest before this command got the lock.
    const settled = { ...(listener !== undefined && { listener }), ...(await keepReach(tools, asked)) };
    const request = { ...asked, service: settled };
    const pending = await loadOrCreateState(tools, request);
    return restoreOnInterrupt(tools, pending, async (signal) => {
      const enrolled = await enroll({ ...tools, describe }, pending, request, signal);
      const planned = await plan(tools, enrolled, pending);
      return { request, applied: await apply(tools, enrolled, planned, signal) };
    });
  });
  return { ...(await verify(tools, applied, request)), savedProxy: describeSavedProxy(request) };
}

/**
 * Returns the service with the proxy of an earlier join at it, or else the proxy of the
 * environment, unless `--proxy` is given. The same applies to the CAs of `--ca-file`, and to the
 * accepted user of the listening program, from a complete or incomplete join.
 */
async function keepReach({ store }: Pick<Tools, 'store'>, { service, named }: JoinRequest): Promise<ServiceAddress> {
  const known = (await store.list()).states.map((state) => state.service).filter(({ url }) => url === service.url);
  const proxy = known.find((each) => each.proxy !== undefined)?.proxy;
  const authorities = known.find((each) => each.authorities !== undefined)?.authorities;
  const listener = known.find((each) => each.listener !== undefined)?.listener;
  return {
    ...service,
    ...(proxy !== undefined && !named.has('proxy') && { proxy }),
    ...(authorities !== undefined && !named.has('authorities') && { authorities }),
    ...(listener !== undefined && { listener }),
  };
}

/** Only the user sees the environment's effect; the unit of the daemon has no such variables. */
function describeSavedProxy({ service, named }: JoinRequest): string | null {
  const proxy = proxyOf(service);
  if (proxy === null || named.has('proxy')) return null;
  return `saved the proxy ${proxy.url} from ${proxy.from}; "cpn set --proxy" changes it`;
}

/** Checks that the host has what the request needs. */
async function check(tools: Pick<Tools, 'host' | 'progress'>, { type, options }: JoinRequest): Promise<void> {
  tools.progress('checking this host');
  const forwarding = type === 'connector';
  const fullTunnel = options.allowRoutes.some(isDefaultRoute);
  await tools.host.check({ firewall: forwarding, forwarding, fullTunnel, maps: options.maps.length > 0 });
}

/** Starts to read the description, which may be far away, before the host creates its keys. */
function beginToDescribe(tools: Pick<Tools, 'describe'>, { service }: JoinRequest): Tools['describe'] {
  const reading = tools.describe(service, null);
  // A failure is handled where the result is needed.
  reading.catch(() => {});
  return (address, ...rest) =>
    address.url === service.url && isSameProxy(proxyOf(address), proxyOf(service))
      ? reading
      : tools.describe(address, ...rest);
}

/** Applies the request to an earlier join with this key, complete or not; else creates a state. */
async function loadOrCreateState(tools: Tools, request: JoinRequest): Promise<PendingJoin> {
  const { states, unreadable } = await tools.store.list();
  // An unreadable state may have used this key: a second use would create a second peer.
  refuseUnreadable(unreadable);
  const earlier = await findEarlierJoin(tools, request, states);
  return earlier === null ? createState(tools, request, states) : resumeJoin(tools, earlier, request, states);
}

/** Enrols the host if necessary, and resolves conflicts with its other networks. */
async function enroll(
  tools: Tools,
  { state: stored, before }: PendingJoin,
  request: JoinRequest,
  signal: AbortSignal | undefined,
): Promise<EnrolledNetwork> {
  const state = await withFeatures(tools, stored);
  throwIfInterrupted(signal);
  const { here: others } = await findOtherNetworks(tools, state);
  const enrolled = isJoined(state)
    ? await resolveConflicts(tools, state, others, request)
    : await enrollHost(tools, state, request, others, before === null);
  return { ...enrolled, state: await keepToken(tools, enrolled.state, request) };
}

/** Computes the changes on the host, and warns of what the tunnel does not get. */
async function plan(
  tools: Tools,
  { state, actual }: EnrolledNetwork,
  { disallowed }: PendingJoin,
): Promise<Evaluation> {
  const { interface: link } = state;
  const planned = await evaluateNetwork(tools, state, { actual, disallowed });
  for (const route of planned.desired.report) {
    // Routes that only the options decline are expected.
    if (route.state !== 'refused' || route.reason === 'not accepted') continue;
    const remedy = remedyOfRefused(route, link);
    tools.warn(`${route.prefix} does not lead into ${link}: it ${route.reason}${remedy === null ? '' : `; ${remedy}`}`);
  }
  const route = findServiceRoute(planned.desired, locateApi(planned.state));
  const { service } = planned.state;
  if (route !== null) tools.warn(`${(proxyOf(service) ?? service).url} ${describeServiceRoute(route)}`);
  const hostsProblem = explainHosts(planned.desired, planned.actual);
  if (hostsProblem !== null) tools.warn(new HostsFileNotUpdated(link, hostsProblem).message);
  return planned;
}

/** Brings the tunnel up, and saves state and wg-quick file. A new tunnel that fails is removed. */
async function apply(
  tools: Tools,
  { state, isReplacement }: EnrolledNetwork,
  planned: Evaluation,
  signal: AbortSignal | undefined,
): Promise<AppliedJoin> {
  const { interface: link, membership } = state;
  tools.progress(`bringing ${link} up as ${membership.peer.address}`);
  try {
    const confirming = { withinMs: defaultConfirmMs, ...(signal && { signal }) };
    // A membership that ended has no peer that could confirm.
    const applied = isReplacement
      ? await applyEvaluation(tools, planned, state)
      : await applyKnownMap(tools, planned, state, confirming);
    tools.progress(`writing ${tools.store.configPath(link)}`);
    await save(tools, applied, state, planned);
    const { state: settled } = await syncPorts(tools, applied, planned.actual);
    return { state: settled, unloaded: await findUnloaded(tools, planned), planned };
  } catch (error) {
    // A tunnel that was up before may carry connections: it stays, even if only partly changed.
    const isNew = planned.actual.link === null;
    if (isNew) await cleanUp(tools, (await tools.store.read(link)) ?? state);
    throw error;
  }
}

/** Waits for a first handshake, and warns of what prevents traffic. */
async function verify(
  tools: Tools,
  applied: AppliedJoin,
  request: JoinRequest,
): Promise<Omit<JoinReport, 'savedProxy'>> {
  const { state, unloaded, planned } = applied;
  const { service } = state;
  const found = [
    ...[...findConfigRemarks(state), ...findSkippedPeers(state)],
    ...[...findPinProblems(state), ...findUnusedMaps(state)],
  ];
  for (const each of found) tools.warn(toSentence(each));
  if (unloaded !== null) await reportLoading(tools, state);
  const unreported = await reportSecret(tools, state);
  if (unreported !== null && unreported !== 'unknown') tools.warn(unreported.message);
  await warnOfDeleted(tools, state);
  const former = await listFormer(tools);
  await finishLeaving(
    tools,
    former.filter((each) => each.service.url === service.url),
  );
  const [result] = await Promise.all([
    awaitHandshake(tools, state, request.handshakeTimeoutMs),
    checkInbound(tools, { ...planned, state }),
  ]);
  refuseUnusable(state);
  const secretMismatches = result.handshake === true ? [] : await checkSecrets(tools, state);
  return { state, unloaded, ...result, secretMismatches };
}

/** Warns of networks that this control plane deleted: they return after a restore. */
async function warnOfDeleted(
  { store, warn }: StateTools,
  { interface: link, service, options }: Joined,
): Promise<void> {
  const { states } = await store.list();
  const others = states.filter(isJoined).filter((each) => each.interface !== link && each.service.url === service.url);
  for (const other of others) {
    const found = findDeletion(other);
    if (found === null) continue;
    const deleted = toSentence(found);
    const { listenPort: port } = other.options;
    const isShared = port !== null && port === options.listenPort;
    warn(isShared ? `${deleted}; it cannot come up while ${link} has UDP port ${port}` : deleted);
  }
}

/** @throws NoUsablePeer if peers were listed, and all of them are skipped */
function refuseUnusable({ interface: link, membership: { map, peer }, ...keys }: Joined): void {
  const own = ownKeys(keys);
  const isAlone = map.peers.every((each) => each.id === peer.id || own.includes(each.publicKey));
  const reasons = (map.skipped ?? []).slice(0, 3).map(({ reason }) => reason);
  if (isAlone && reasons.length > 0) throw new NoUsablePeer(map.name, link, reasons);
}

interface AppliedJoin extends Pick<JoinReport, 'state' | 'unloaded'> {
  readonly planned: Evaluation;
}

/** After a signal, restores the state of a repeated join, except for observations. */
async function restoreOnInterrupt<T>(
  tools: Pick<Tools, 'store' | 'deferSignals'>,
  { before }: PendingJoin,
  work: (signal?: AbortSignal) => Promise<T>,
): Promise<T> {
  if (before === null || !isJoined(before)) return work();
  return tools.deferSignals(async (signal) => {
    try {
      return await work(signal);
    } catch (error) {
      const state = error instanceof Interrupted ? await tools.store.read(before.interface) : null;
      if (state !== null) await tools.store.write({ ...before, receipt: state.receipt, features: state.features });
      throw error;
    }
  });
}

/**
 * Reads the service's description for each join. If that fails, the features read earlier apply.
 */
async function withFeatures(tools: Pick<Tools, 'store' | 'describe' | 'log'>, state: State): Promise<State> {
  const features = await readFeatures(tools, state);
  if (sameFeatures(features, state.features)) return state;
  const described = { ...state, features };
  await tools.store.write(described);
  return described;
}

/** Saves the user's token if the host has none, and warns if there is no token at all. */
async function keepToken(tools: StateTools, state: Joined, { personalToken }: JoinRequest): Promise<Joined> {
  const next = withPersonalToken(state, personalToken);
  if (next !== state) await tools.store.write(next);
  const noAccess = findNoAccess(next);
  if (noAccess !== null) tools.warn(toSentence(noAccess));
  return next;
}
