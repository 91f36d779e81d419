import { CpnError, NotJoined } from '../../core/errors/index.ts';
import { type Check, findStop } from '../../core/explain/check.ts';
import { findForwardPaths } from '../../core/explain/check-firewall.ts';
import { findInboundPaths } from '../../core/explain/check-inbound.ts';
import type { QueryPath } from '../../core/explain/check-name.ts';
import { reversePathKeys } from '../../core/explain/check-reverse-path.ts';
import { usesTunnel } from '../../core/explain/check-route.ts';
import type { ExplainedFlow } from '../../core/explain/check-rules.ts';
import { explainOther, explainPath } from '../../core/explain/explain-path.ts';
import { type FoundTarget, findNetwork } from '../../core/explain/find-target.ts';
import { findActualPeer, type NetworkOnHost } from '../../core/explain/view.ts';
import type { ForeignDrops, PacketPaths } from '../../core/forward/foreign/foreign-drops.ts';
import { findMapAge } from '../../core/map/map-age.ts';
import type { Id } from '../../core/map/model.ts';
import { findOwnPeer } from '../../core/map/own-peer.ts';
import { translate } from '../../core/map/prefix-maps.ts';
import type { Address } from '../../core/net/cidr.ts';
import { problem } from '../../core/problems/problem.ts';
import type { Joined } from '../../store/state/state.ts';
import { describeUnlisted } from '../access.ts';
import { findDown } from '../reconcile/deleted-network.ts';
import { evaluateNetwork } from '../reconcile/evaluate-network.ts';
import { readReturnPaths } from '../reconcile/return-paths.ts';
import { ownTag } from '../report-secret.ts';
import { refuseUnreadable, selectJoined } from '../select.ts';
import { secondsNow, type Tools } from '../tools.ts';
import { checkLookup } from './check-lookup.ts';
import { type FoundAddress, findAddress } from './find-address.ts';

/** The path of a packet from this host to an address, and where it stops. */
export interface Explanation extends Pick<FoundAddress, 'origin'> {
  /** Null for a name without an address. The packet is then that of its DNS server. */
  readonly address: Address | null;
  /** The DNS name that was given; null for an address, or the name of a peer in its network. */
  readonly name: string | null;
  /** Where the queries for the name go; null without a name. */
  readonly dns: Pick<QueryPath, 'domain' | 'link' | 'servers'> | null;
  /** Null, like `interface`, for an address outside every network of this host. */
  readonly network: { readonly id: Id | null; readonly name: string } | null;
  readonly interface: string | null;
  readonly checks: readonly Check[];
  /** The first check that stops the packet. */
  readonly stop: Check | null;
}

/**
 * Explains the path to the address that `text` names, from the host alone: it queries no control
 * plane, sends nothing to the address, and changes nothing. If several networks have the address,
 * the network that carries its packets is explained. For a DNS name without an address, explains
 * the path to the server that should have it. `flow` is judged by the rules of a closed network.
 *
 * @throws NotJoined if this host is in no network
 * @throws InvalidValue if `text` names no address
 */
export async function explainAddress(
  tools: Tools,
  text: string,
  flow: ExplainedFlow | null = null,
): Promise<Explanation> {
  const { states, unreadable } = await selectJoined(tools, undefined);
  if (states.length === 0) {
    refuseUnreadable(unreadable);
    throw new NotJoined('no network is joined; join one with "cpn join"');
  }
  for (const { error } of unreadable) tools.warn(error.message);
  const found = await findAddress(tools, states, text);
  const views = await evaluateAll(tools, states);
  const { dns, server, before, after } = await checkLookup(tools, found.name, views);
  const to = found.address ?? server;
  const place = to === null ? null : findNetwork(to, views);
  const path = to === null ? [] : await checkPath(tools, to, place, views, server === null ? flow : dnsQuery);
  const checks = [...before, ...path, ...after];
  const view = place?.view;
  return {
    address: found.address,
    origin: server === null ? found.origin : `the path to its DNS server ${server}`,
    name: found.name?.name ?? null,
    dns,
    network: view ? { id: view.map.id, name: view.map.name } : null,
    interface: view?.desired.link ?? null,
    checks,
    stop: findStop(checks),
  };
}

const dnsQuery: ExplainedFlow = { protocol: 'udp', port: 53 };

function checkPath(
  tools: Pick<Tools, 'host' | 'now'>,
  address: Address,
  place: FoundTarget<NetworkOnHost> | null,
  views: readonly NetworkOnHost[],
  flow: ExplainedFlow | null,
): Promise<Check[]> {
  return place ? checkNetworkPath(tools, address, place, flow) : checkOtherPath(tools, address, views);
}

/** Orders the networks by precedence. A network that cannot be evaluated hides no other. */
async function evaluateAll(tools: Tools, states: readonly Joined[]): Promise<NetworkOnHost[]> {
  const results = await Promise.allSettled(states.map((state) => readView(tools, state)));
  const failures = results.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
  for (const error of failures) {
    if (!(error instanceof CpnError) || failures.length === states.length) throw error;
    tools.warn(error.message);
  }
  const views = results.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  return views.toSorted((a, b) => (a.createdAt < b.createdAt ? -1 : 1)).map(({ view }) => view);
}

async function readView(tools: Tools, state: Joined): Promise<{ createdAt: string; view: NetworkOnHost }> {
  const [{ listed, desired, actual, expired, serviceTime }, { silent, sync, paths }] = await Promise.all([
    evaluateNetwork(tools, state),
    tools.store.readNotes(state.interface),
  ]);
  const { map, peer } = state.membership;
  const self = findOwnPeer(map, state) ?? peer;
  const failed = state.failed.filter(({ back }) => !back).map((each) => each.peer);
  const { enabled } = state;
  const secretTag = ownTag(state);
  const refused = sync.refused && { by: sync.refused, error: sync.refusal ?? null };
  const age = desired.isConnector ? findMapAge(state, serviceTime) : null;
  const link = state.interface;
  const isOutdated = age?.isOver === true;
  const outdated = isOutdated ? problem('map-expired', { interface: link, confirmed_at: age.confirmedAt }) : null;
  const down = findDown(state);
  const deadlines = { expired, outdated, down };
  const { masquerade: masquerades, directPaths } = state.options;
  const options = { masquerades, directPaths };
  const observed = { desired, ...options, actual, silent, paths, failed, failures: state.failed, secretTag, refused };
  const unlisted = listed ? null : describeUnlisted(state);
  const view = { map, address: self.address, listed, unlisted, enabled, ...observed, ...deadlines };
  return { createdAt: state.createdAt, view };
}

async function checkNetworkPath(
  tools: Pick<Tools, 'host' | 'now'>,
  address: Address,
  { view, target }: FoundTarget,
  flow: ExplainedFlow | null,
): Promise<Check[]> {
  const { link } = view.desired;
  const { local, prefix } = target.is === 'route' ? target.report : {};
  const mapped = local === undefined || prefix === undefined ? address : translate(address, prefix, local);
  const checksReturn = usesTunnel(target) && view.actual.link?.addresses.some((each) => each.address === view.address);
  const endpoint = usesTunnel(target) ? findActualPeer(address, view)?.endpoint : null;
  const mark = view.actual.device?.fwmark ?? undefined;
  const [there, back, outer, actual, answers] = await Promise.all([
    tools.host.route(mapped),
    checksReturn ? tools.host.route(address, { source: view.address }) : null,
    endpoint ? tools.host.route(endpoint.host, { mark }) : null,
    tools.host.observe({ link, firewall: false, hosts: false, sysctls: Object.values(reversePathKeys(link)) }),
    readReturnPaths(tools.host, view, address),
  ]);
  const sysctls = { ...view.actual.sysctls, ...actual.sysctls };
  const evaluation = { ...view, actual: { ...view.actual, sysctls } };
  const found = { view: evaluation, target };
  const forward = findForwardPaths(mapped, found, there);
  const inbound = usesTunnel(target) ? findInboundPaths(evaluation) : [];
  const drops = await readDrops(tools, link, { forward, inbound });
  return explainPath(address, found, { there, back, outer, drops, answers }, secondsNow(tools), flow);
}

async function checkOtherPath(
  tools: Pick<Tools, 'host'>,
  address: Address,
  views: readonly NetworkOnHost[],
): Promise<Check[]> {
  const full = views.find(({ desired }) => desired.rules.length > 0);
  const [there, answers] = await Promise.all([
    tools.host.route(address),
    full ? readReturnPaths(tools.host, full, address) : [],
  ]);
  return explainOther(address, views, there, answers);
}

/** Finds drops by other programs; null, without an error, if their rules cannot be read. */
async function readDrops(tools: Pick<Tools, 'host'>, link: string, paths: PacketPaths): Promise<ForeignDrops | null> {
  const { host } = tools;
  if (paths.forward.length + paths.inbound.length === 0) return { forward: [], inbound: null };
  if (!host.foreignDrops) return null;
  return host.foreignDrops(link, paths).catch((error) => {
    if (error instanceof CpnError) return null;
    throw error;
  });
}
