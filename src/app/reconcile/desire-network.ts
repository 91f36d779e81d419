import type { PublicKey } from '../../core/crypto/keys.ts';
import type { HostForwarding } from '../../core/forward/ingress.ts';
import { withoutTool } from '../../core/forward/own-table.ts';
import type { Actual, ActualPeer, Device } from '../../core/host-state/actual.ts';
import { findMapEnd } from '../../core/map/map-age.ts';
import type { NetworkMap, Peer } from '../../core/map/model.ts';
import { findOwnPeer } from '../../core/map/own-peer.ts';
import { addressesOf } from '../../core/names/resolved-names.ts';
import { routeDnsOf } from '../../core/names/route-dns.ts';
import type { DomainReport } from '../../core/names/split-dns.ts';
import { familyOf, formatInterfaceAddress, isDefaultRoute, maskPrefix, type Prefix } from '../../core/net/cidr.ts';
import { isLiteral, type SocketEndpoint } from '../../core/net/endpoint.ts';
import { PrefixIndex } from '../../core/net/prefix-index.ts';
import { computeDesired } from '../../core/reconcile/compute-desired.ts';
import { withFormerRoutes } from '../../core/reconcile/desired.ts';
import { findMovedPeers } from '../../core/reconcile/moved-peers.ts';
import { plan } from '../../core/reconcile/plan.ts';
import { arePeersSettled } from '../../core/reconcile/plan-device.ts';
import type { Step } from '../../core/reconcile/step.ts';
import { findNested } from '../../core/routing/nested-prefixes.ts';
import { strictlyOutside } from '../../core/routing/outside.ts';
import { assignTable } from '../../core/routing/route-table.ts';
import { findAcceptedTables, type StrictExceptions } from '../../core/routing/strict-rules.ts';
import { findTunnelledResolvers } from '../../core/routing/tunnelled-resolvers.ts';
import { sameData } from '../../core/util/same-data.ts';
import { renderConfig } from '../../core/wg-quick/render.ts';
import type { Joined, State } from '../../store/state/state.ts';
import type { DesiredNetwork, DesireInputs, EvaluationCache, OtherNetwork } from '../evaluation-cache.ts';
import { isJoined } from '../select.ts';
import { locateApi, locateServices, neededNames, serviceNames } from './names/resolve-names.ts';
import { constrainRoutes } from './route-constraints.ts';

/**
 * Returns a function that lists the desired routes of the last evaluation that were present. A
 * session over such a route came through the tunnel. If another program removes such a route, it is
 * restored regardless of sessions.
 */
export function recallRoutes(evaluations: EvaluationCache, link: string): () => readonly Prefix[] {
  const last = evaluations.find(link);
  if (last === undefined) return () => [];
  const { inputs, wanted } = last;
  return () => {
    const taken = new Set(wanted.taken);
    return [...findNested(inputs.observed, []), ...inputs.recalled].filter((prefix) => taken.has(prefix));
  };
}

/**
 * Plans a network. Only this function compares a pass with the one before. With equal inputs, the
 * desired state is not computed again; without steps and with an equal device, nothing is planned.
 *
 * @param now seconds since the epoch
 */
export function planInputs(
  evaluations: EvaluationCache,
  inputs: DesireInputs,
  device: Device | null,
  now: number,
): { readonly wanted: DesiredNetwork; readonly steps: readonly Step[] } {
  const link = inputs.state.interface;
  const last = evaluations.find(link);
  const isSame = last !== undefined && sameData(last.inputs, inputs);
  const wanted = isSame ? last.wanted : desireNetwork(inputs);
  const actual = { ...inputs.observed, device };
  const isSettled = isSame && last.settled !== undefined && sameData(last.settled, device);
  const steps = isSettled
    ? []
    : plan(wanted.desired, actual, now, findMoved(wanted, inputs, device), last?.wanted.desired.firewall ?? null);
  const stays = isSettled || (steps.length === 0 && arePeersSettled(wanted.desired, actual));
  if (actual.unread === undefined) evaluations.keep(link, { inputs, wanted, settled: stays ? device : undefined });
  return { wanted, steps };
}

/** Returns peers without their learned endpoint: the network has another, or it is unreachable. */
function findMoved(
  { moved, desired }: DesiredNetwork,
  { unreachable, silent }: DesireInputs,
  device: Device | null,
): ReadonlySet<PublicKey> {
  if (device === null || unreachable.length + silent.length === 0) return moved;
  const avoided = new Set([...unreachable, ...silent]);
  const wanted = new Map(desired.config.peers.map((peer) => [peer.publicKey, peer.endpoint?.host ?? null]));
  const isStranded = ({ publicKey, endpoint }: ActualPeer) => {
    const other = wanted.get(publicKey) ?? null;
    return endpoint !== null && other !== null && avoided.has(endpoint.host) && !avoided.has(other);
  };
  return new Set([...moved, ...device.peers.filter(isStranded).map((peer) => peer.publicKey)]);
}

function desireNetwork(inputs: DesireInputs): DesiredNetwork {
  const { state, others, observed, saved, text, applied, label, unreachable, sessions } = inputs;
  const { self, map, listed } = findSelf(state);
  const { interface: link, keyPair, networkSecret, options, resolved, failed, labels, pathMtu } = state;
  const routeTable = findRouteTable(state, others, observed);
  const constraints = constrainRoutes({ ...inputs, routeTable });
  const wanted = computeDesired(
    {
      ...{ link, map, self, keyPair, networkSecret, options, resolved, unreachable, failed, label, labels, pathMtu },
      sessions,
      forwarding: describeForwarding(state, observed, others),
      routeTable,
      strict: options.strictTunnel ? findExceptions(observed, routeTable) : null,
      ...{
        expired: inputs.expired,
        names: {
          entries: routeDnsOf(state.membership.map, state.membership.text),
          suffixes: inputs.suffixes,
          needed: [...neededNames(state), ...others.flatMap((other) => other.names)],
          networks: others.map((other) => other.interface),
          resolver: observed.dns,
          isOwn: state.ownsDns === true,
          refused: inputs.refusedDns,
        },
        mapEnd: findMapEnd(state),
        services: locateServices(state, observed.underlay.addresses),
        ...(state.features?.includes('peer-paths') && state.options.directPaths && { paths: inputs.paths ?? [] }),
      },
    },
    constraints,
  );
  const domains = state.enabled ? wanted.domains : wanted.domains.map(whileDown);
  const desired = withFormerRoutes({ ...wanted, domains }, saved);
  const config = renderConfig(desired.savedConfig, { saved: saved && text !== null ? { config: saved, text } : null });
  const taken = [maskPrefix(formatInterfaceAddress(desired.config.address)), ...desired.routes].filter(
    (prefix) => !isDefaultRoute(prefix),
  );
  const { connected, routed } = observed.underlay;
  const elsewhere = new PrefixIndex([...connected, ...routed].map((each) => [each.prefix, each]));
  const isShared = taken.some((prefix) => elsewhere.findWithin(prefix) !== null);
  return {
    listed,
    desired,
    config,
    taken,
    isShared,
    tunnelledResolvers: findTunnelledResolvers(
      constraints.underlay,
      constraints.stubResolvers ?? [],
      constraints.tunnelPrefixes,
    ),
    moved: findMovedPeers(desired.config, applied ?? saved, { map, resolved }),
  };
}

/** A network that is down has no domain, whatever the daemon does. */
function whileDown(report: DomainReport): DomainReport {
  return report.state === 'refused' ? report : { ...report, state: 'waiting', reason: 'the network is down' };
}

/** Returns the routing table for accepted routes; null for the main table. */
export function findRouteTable(
  state: State,
  others: readonly Pick<State, 'interface' | 'createdAt' | 'receipt'>[],
  { isPlain, routes }: Pick<Actual, 'isPlain' | 'routes'>,
): string | null {
  if (isPlain) return null;
  const networks = [...others.filter((other) => other.interface !== state.interface), state];
  return assignTable(
    state.interface,
    networks,
    routes.map(({ table }) => table),
  );
}

function findExceptions({ underlay, rules }: Pick<Actual, 'underlay' | 'rules'>, own: string | null): StrictExceptions {
  return { prefixes: strictlyOutside(underlay), tables: findAcceptedTables(rules, own) };
}

/** Collects the facts about this host's forwarding that determine the packet rules of a network. */
function describeForwarding(
  state: Joined,
  { sysctls, firewall, link, isPlain }: Pick<Actual, 'sysctls' | 'firewall' | 'link' | 'isPlain'>,
  others: readonly OtherNetwork[],
): HostForwarding {
  return {
    sysctls,
    receipt: state.receipt.filter((entry) => entry.made === 'sysctl'),
    others: others.map(({ interface: link, isConnector, address }) => ({ link, isConnector, address })),
    reached: {
      api: others.flatMap(({ reached }) => reached.api),
      endpoints: others.flatMap(({ reached }) => reached.endpoints),
      ports: [state.options, ...others].flatMap(({ listenPort }) => listenPort ?? []),
    },
    hasNft: !isPlain && !firewall?.includes(withoutTool),
    ...(isPlain && { ignoresRules: true }),
    vrf: link?.vrf,
  };
}

/** Lists the other networks of this host. */
export function othersOf({ interface: link, options, createdAt }: State, states: readonly State[]): OtherNetwork[] {
  const mayTunnel = options.allowRoutes.some(isDefaultRoute);
  return states
    .filter((other) => other.interface !== link)
    .map((other) => ({
      ...{ interface: other.interface, createdAt: other.createdAt, receipt: other.receipt },
      isConnector: isForwarder(other),
      reached: mayTunnel && other.enabled && isJoined(other) ? findReached(other) : { api: [], endpoints: [] },
      listenPort: other.options.listenPort,
      names: other.enabled && isJoined(other) ? findNames(other, createdAt) : [],
      address: other.membership?.peer.address ?? null,
    }));
}

/** A network that was joined later cannot take a domain away with the endpoint of a connector. */
function findNames(other: Joined, createdAt: State['createdAt']): readonly string[] {
  return other.createdAt > createdAt ? serviceNames(other) : neededNames(other);
}

/** A full tunnel carries only IPv4: other networks reach IPv4 endpoints through it. */
function findReached(state: Joined): OtherNetwork['reached'] {
  const { membership, resolved } = state;
  // A network switches between the addresses of a name without a new pass here.
  const endpoints = membership.map.peers.flatMap(({ endpoint }): SocketEndpoint[] => {
    if (endpoint === null || isLiteral(endpoint)) return endpoint === null ? [] : [endpoint];
    return addressesOf(endpoint.host, resolved).map((host) => ({ host, port: endpoint.port }));
  });
  return {
    api: locateApi(state).filter((address) => familyOf(address) === 6),
    endpoints: endpoints.filter(({ host }) => familyOf(host) === 6),
  };
}

/** True of a network that is up, or will be, and forwards packets. */
export function isForwarder(state: State): state is Joined {
  return state.enabled && isJoined(state) && state.enrollment.type === 'connector';
}

/** Returns this host in the map. An unlisted host keeps its address, and has no peers. */
export function findSelf(state: Joined): { self: Peer; map: NetworkMap; listed: boolean } {
  const { membership, keyPair, enrollment } = state;
  const { map, peer } = membership;
  const self = findOwnPeer(map, state);
  if (self) return { self, map, listed: true };
  const { type, endpoint } = enrollment;
  const unlisted: Peer = { ...peer, type, endpoint, publicKey: keyPair.publicKey, routes: [], withdrawn: [] };
  return { self: unlisted, map: { ...map, routes: [], peers: [unlisted] }, listed: false };
}
