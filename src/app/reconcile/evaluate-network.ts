import { HostUnread, NotOurs } from '../../core/errors/index.ts';
import { markOtherTimeouts, tableOf } from '../../core/forward/own-table.ts';
import type { Actual, Device } from '../../core/host-state/actual.ts';
import { findExpired, hasDeadlines } from '../../core/map/expiry.ts';
import { comparePeerIds, type Id, type PeerId } from '../../core/map/model.ts';
import { ownKeys } from '../../core/map/own-peer.ts';
import { serviceTimeOf } from '../../core/map/service-time.ts';
import { chooseLabels } from '../../core/names/hosts-label.ts';
import { findPublicSuffixes } from '../../core/names/public-suffixes.ts';
import { routeDnsOf } from '../../core/names/route-dns.ts';
import { type Address, covers, type Prefix } from '../../core/net/cidr.ts';
import { findDevicePaths } from '../../core/paths/device-paths.ts';
import { added, type Change, updated } from '../../core/reconcile/change.ts';
import { aliasOf } from '../../core/reconcile/desired.ts';
import { isOurFirewall, isOurs } from '../../core/reconcile/plan.ts';
import type { Step } from '../../core/reconcile/step.ts';
import { sshClient } from '../../core/routing/kept-outside.ts';
import { sameData } from '../../core/util/same-data.ts';
import type { TunnelConfig } from '../../core/wg-quick/parse.ts';
import type { Joined, RefusedDns, State } from '../../store/state/state.ts';
import type { DesiredNetwork, DesireInputs } from '../evaluation-cache.ts';
import { isJoined } from '../select.ts';
import { secondsNow, type Tools } from '../tools.ts';
import { findSelf, othersOf, planInputs, recallRoutes } from './desire-network.ts';
import { findUnreachable } from './find-unreachable.ts';
import { isComplete, observeOptionsFor } from './observe-options.ts';
import { readEarlier } from './route-constraints.ts';

/** A network's desired and actual state, and the steps between them. Nothing has changed yet. */
export interface Evaluation extends DesiredNetwork {
  readonly state: Joined;
  readonly actual: Actual;
  readonly steps: readonly Step[];
  /** The last-known-good wg-quick file; null without one, or if it is not in cpn's format. */
  readonly saved: TunnelConfig | null;
  /** The text of that file; null without one. */
  readonly savedText: string | null;
  /** All differences, including the text of the file. */
  readonly changes: readonly Change[];
  /** The time of the service, in milliseconds since 1970. */
  readonly serviceTime: number;
  /** Listed peers that have expired by that time. */
  readonly expired: readonly PeerId[];
}

export interface EvaluationOptions {
  /** A recent observation with the same options; by default the host is observed. */
  readonly actual?: Actual | undefined;
  /** Prefixes that were removed from `--allow-route`. */
  readonly disallowed?: readonly Prefix[];
  /** The config that was last applied, if it differs from the wg-quick file. */
  readonly applied?: TunnelConfig;
  /** True to evaluate WireGuard alone if the rest is not observable: see {@link Actual.unread}. */
  readonly acceptsUnread?: boolean;
  /** Addresses of names at which peers were silent. */
  readonly silent?: readonly Address[] | undefined;
  /** The peers to reach over direct paths; by default those of WireGuard's table. */
  readonly paths?: readonly PeerId[] | undefined;
}

/**
 * Observes the host and plans a pass, without requests to a control plane or resolver.
 *
 * @throws HostUnread if the host cannot be observed, and there is no interface of ours to evaluate
 *   without that
 */
export async function evaluateNetwork(
  tools: Tools,
  state: Joined,
  { actual: actualBefore, disallowed = [], applied, acceptsUnread = false, silent = [], paths }: EvaluationOptions = {},
): Promise<Evaluation> {
  const link = state.interface;
  const [found, { states, text, saved }] = await Promise.all([
    actualBefore && isComplete(actualBefore, state)
      ? actualBefore
      : tools.host.observe({ ...observeOptionsFor(state), acceptsUnread }),
    readKnown(tools, state),
  ]);
  const actual = await withTakenPort(tools, link, found);
  if (actual.unread !== undefined && actual.device === null) throw new HostUnread(link, actual.unread);
  if (!isOwnLink(state, aliasOf(state.membership.map), actual)) {
    throw new NotOurs('the interface', link, 'remove it, or leave this network');
  }
  if (!isOurFirewall(actual, state.receipt)) {
    const table = `inet ${tableOf(link)}`;
    throw new NotOurs(
      'the nft table',
      table,
      `type: nft delete table ${table}, or join again with another --interface`,
    );
  }
  const { device, timeouts: _, ...observed } = actual;
  const serviceTime = await readServiceTime(tools, state);
  const expired = findExpired(state, serviceTime);
  const provided = state.membership;
  const inputs = {
    ...{ state, observed, text, saved, applied: applied ?? null, disallowed, expired },
    others: othersOf(state, states),
    unreachable: await findUnreachable(tools.host, state, device),
    silent,
    earlier: await readEarlier(tools, state, states),
    label: labelNetwork(state, states),
    suffixes: await findPublicSuffixes(routeDnsOf(provided.map, provided.text).flatMap(({ domains }) => domains)),
    refusedDns: findRefusedDns(state, tools.now().getTime()),
    paths: paths ?? findPresentPaths(state, device, secondsNow(tools)),
  };
  let planned = await planWithSessions(tools, inputs, device);
  const firewall = markOtherTimeouts(planned.wanted.desired.firewall, actual, serviceTime);
  if (firewall !== actual.firewall)
    planned = await planWithSessions(tools, { ...inputs, observed: { ...observed, firewall } }, device);
  const { wanted } = planned;
  const steps = withServiceTime(planned.steps, serviceTime);
  // The file, and the addresses that stay outside, depend on the whole host.
  const isWhole = actual.unread === undefined;
  const file = isWhole ? planFile(tools, link, text, wanted.config) : [];
  const changes = [...file, ...steps.flatMap((step) => step.changes)];
  const known = isWhole ? withResolvers(withLabel(state, inputs.label), wanted) : state;
  return {
    ...wanted,
    state: known,
    actual: { ...actual, firewall },
    steps,
    saved,
    savedText: text,
    changes,
    serviceTime,
    expired,
  };
}

/** The daemon alone can distinguish its own socket from that of another program of root. */
async function withTakenPort({ store }: Pick<Tools, 'store'>, link: string, actual: Actual): Promise<Actual> {
  if (!actual.dns) return actual;
  const { namesTaken: taken } = await store.readNotes(link);
  return taken === null ? actual : { ...actual, dns: { ...actual.dns, isServing: false, taken } };
}

/** Milliseconds after which refused DNS settings are tried again. */
const dnsRetryMs = 600_000;

function findRefusedDns({ refusedDns }: Joined, now: number): RefusedDns | null {
  const isRecent = refusedDns !== undefined && Math.abs(now - Date.parse(refusedDns.at)) < dnsRetryMs;
  return isRecent ? refusedDns : null;
}

/** Peers get the new key of this host from the map: no path outlives a rotation. */
function findPresentPaths(state: Joined, device: Device | null, now: number): readonly PeerId[] {
  if (device?.publicKey !== state.keyPair.publicKey) return [];
  const { map, self } = findSelf(state);
  return findDevicePaths(device, map, self, now);
}

/** Records kept-outside addresses and tunnelled resolvers; returns `state` itself if unchanged. */
function withResolvers(state: Joined, { desired, tunnelledResolvers }: DesiredNetwork): Joined {
  const found = { keptOutside: desired.keptOutside, tunnelledResolvers };
  const { keptOutside, tunnelledResolvers: before } = state;
  return sameData(found, { keptOutside, tunnelledResolvers: before }) ? state : { ...state, ...found };
}

/** The service's time, from its last reply. Without deadlines in the map, the wall clock. */
async function readServiceTime(
  tools: Pick<Tools, 'store' | 'now' | 'uptime'>,
  { interface: link, membership, confirmed }: Joined,
): Promise<number> {
  const clocks = { now: tools.now().getTime(), uptime: tools.uptime() };
  if (!hasDeadlines(membership.map)) return clocks.now;
  const { sync } = await tools.store.readNotes(link);
  return serviceTimeOf(sync.clock, clocks, confirmed);
}

/** Adds to the steps the time from which the deadlines of packet rules count. */
export function withServiceTime(steps: readonly Step[], now: number): readonly Step[] {
  return steps.map((step) => (step.do === 'set-firewall' ? { ...step, now: Math.round(now) } : step));
}

/** Reads the files and derives the keys while the tools run; this needs no tool. */
async function readKnown({ store, savedConfigs }: Pick<Tools, 'store' | 'savedConfigs'>, state: Joined) {
  const link = state.interface;
  const { states } = await store.list();
  const text = await store.readConfig(link);
  ownKeys(state);
  return { states, text, saved: savedConfigs.parse(link, text) };
}

/**
 * Plans, and reads the SSH sessions only in these cases:
 * - packet rules are to be loaded,
 * - a route or an address is to be added,
 * - another program has a route for a part of what the tunnel takes, or
 * - a session is kept outside.
 *
 * In all other cases, every session keeps its path. Reading the sessions takes as long as the rest
 * of the observation. If a session is at risk, the plan is made again.
 */
async function planWithSessions(
  tools: Pick<Tools, 'host' | 'now' | 'evaluations'>,
  inputs: Omit<DesireInputs, 'sshClients' | 'recalled' | 'sessions'>,
  device: Device | null,
) {
  const now = secondsNow(tools);
  const before = recallRoutes(tools.evaluations, inputs.state.interface);
  const planned = planInputs(tools.evaluations, { ...inputs, sshClients: [], recalled: [], sessions: [] }, device, now);
  const { taken, isShared } = planned.wanted;
  const isSessionKept = inputs.state.keptOutside.some(({ what }) => what === sshClient);
  const loadsRules = planned.steps.some((step) => step.do === 'set-firewall');
  const takesRoutes = isShared || isSessionKept || planned.steps.some(mayCutSession);
  if (!loadsRules && !takesRoutes) return planned;
  const found = await tools.host.sshClients();
  const isAtStake = takesRoutes && found.some(({ address }) => taken.some((prefix) => covers(prefix, address)));
  if (!isAtStake && !(loadsRules && found.length > 0)) return planned;
  const [sshClients, recalled] = isAtStake ? [found, before()] : [[], []];
  return planInputs(
    tools.evaluations,
    { ...inputs, sshClients, recalled, sessions: loadsRules ? found : [] },
    device,
    now,
  );
}

/** True if a step leads addresses into the tunnel that were outside before. */
function mayCutSession(step: Step): boolean {
  const endsThrow =
    step.do === 'configure-link' && step.commands.some((command) => 'remove' in command && command.remove === 'throw');
  return endsThrow || step.changes.some(takesAddresses);
}

function takesAddresses({ action, kind }: Change): boolean {
  return action !== 'remove' && (kind === 'route' || kind === 'address' || kind === 'rule');
}

/** True if we created an interface of our name. During a rotation it may have either key. */
export function isOwnLink({ keyPair, rotation, receipt }: State, alias: string, actual: Actual): boolean {
  const pairs = rotation === null ? [keyPair] : [keyPair, rotation.keyPair];
  return pairs.some((each) => isOurs({ alias, keyPair: each }, actual, receipt));
}

function planFile(tools: Pick<Tools, 'store'>, link: string, present: string | null, config: string): Change[] {
  if (present === config) return [];
  const target = tools.store.configPath(link);
  // The file contains the private key: its text is never shown.
  if (present === null) return [added('file', target, 'wg-quick', 'the file is not there')];
  return [updated('file', target, 'wg-quick', 'wg-quick', 'the text differs')];
}

/**
 * Returns a network's label in the names of its peers. A stored label stays. A new label is one
 * that no other network of this host has. Of equal names, the lower id gets the name as its label.
 * For equal ids of two services, the network that was joined first gets it.
 */
export function labelNetwork(state: Joined, states: readonly State[]): string {
  if (state.label !== undefined) return state.label;
  const others = states.filter(isJoined).filter((other) => other.interface !== state.interface);
  const taken = others.flatMap(({ label }) => label ?? []);
  const all = [state, ...others.filter(({ label }) => label === undefined)].toSorted(
    (a, b) => comparePeerIds(idOf(a), idOf(b)) || (a.createdAt < b.createdAt ? -1 : 1),
  );
  const named = all.map((each) => ({ id: idOf(each), name: each.membership.map.name }));
  return chooseLabels(named, 'network', taken)[all.indexOf(state)] as string;
}

function withLabel(state: Joined, label: string): Joined {
  return state.label === label ? state : { ...state, label };
}

/** A network without an id comes first: ids of our own control plane begin at 1. */
function idOf({ membership }: Joined): Id {
  return membership.map.id ?? 0;
}
