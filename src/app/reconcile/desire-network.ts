import type { PublicKey } from '../../core/crypto/keys.ts';
import type { HostForwarding, ReachedOutside } from '../../core/forward/ingress.ts';
import { withoutTool } from '../../core/forward/own-table.ts';
import type { Actual, ActualPeer, Device, SshClient } from '../../core/host-state/actual.ts';
import { findMapEnd } from '../../core/map/map-age.ts';
import type { NetworkMap, Peer, PeerId } from '../../core/map/model.ts';
import { findOwnPeer } from '../../core/map/own-peer.ts';
import { addressesOf } from '../../core/names/resolved-names.ts';
import { type Address, familyOf, isDefaultRoute, maskPrefix, type Prefix } from '../../core/net/cidr.ts';
import { isLiteral, type SocketEndpoint } from '../../core/net/endpoint.ts';
import { formatInterfaceAddress } from '../../core/net/interface-address.ts';
import { PrefixIndex } from '../../core/net/prefix-index.ts';
import { computeDesired } from '../../core/reconcile/compute-desired.ts';
import { type Desired, withFormerRoutes } from '../../core/reconcile/desired.ts';
import { findMovedPeers } from '../../core/reconcile/moved-peers.ts';
import { plan } from '../../core/reconcile/plan.ts';
import { arePeersSettled } from '../../core/reconcile/plan-device.ts';
import type { Step } from '../../core/reconcile/step.ts';
import { findNested, type TunnelledResolver } from '../../core/routing/nested-prefixes.ts';
import { strictlyOutside } from '../../core/routing/outside.ts';
import { assignTable } from '../../core/routing/route-table.ts';
import { findAcceptedTables, type StrictExceptions } from '../../core/routing/strict-rules.ts';
import { findTunnelledResolvers } from '../../core/routing/tunnelled-resolvers.ts';
import { sameData } from '../../core/util/same-data.ts';
import { renderConfig } from '../../core/wg-quick/render.ts';
import type { TunnelConfig } from '../../core/wg-quick/tunnel-config.ts';
import type { Joined, State } from '../../store/state/state.ts';
import { isJoined } from '../select.ts';
import { locateApi } from './resolve-names.ts';
import { type ConstraintInputs, constrainRoutes } from './route-constraints.ts';

/** Another network of this host. */
export interface OtherNetwork extends Pick<State, 'interface' | 'createdAt' | 'receipt'> {
  readonly isConnector: boolean;
  /** What it reaches outside a full tunnel of this network; empty where this network has none. */
  readonly reached: Pick<ReachedOutside, 'api' | 'endpoints'>;
  readonly listenPort: number | null;
  /** This host's address there; null before it has one. */
  readonly address: Address | null;
}

/** Everything that a network's desired state follows from. */
export interface DesireInputs extends ConstraintInputs {
  readonly others: readonly OtherNetwork[];
  /** The text of the wg-quick file; null where there is none. */
  readonly text: string | null;
  /** The config that was applied last, where it is not that of the wg-quick file. */
  readonly applied: TunnelConfig | null;
  /** The network's label in the hosts file; null where the file does not name its peers. */
  readonly label: string | null;
  /** Addresses of endpoints to which this host has no route outside the tunnel. */
  readonly unreachable: readonly Address[];
  /** Addresses of names at which peers were silent: what was learned there is not kept. */
  readonly silent: readonly Address[];
  /** The SSH sessions that packet rules could end; read only where rules are to be loaded. */
  readonly sessions: readonly SshClient[];
  /** Listed peers that have expired. */
  readonly expired: readonly PeerId[];
}

/** What a network is to be on this host. */
export interface DesiredNetwork {
  /** False when the map does not list this host: then no peer is reached, and the key pair is kept. */
  readonly listed: boolean;
  readonly desired: Desired;
  /** The text that the wg-quick file should have. */
  readonly config: string;
  /** The prefixes that the tunnel takes, but for a default route. */
  readonly taken: readonly Prefix[];
  /** Another program has a route for a part of them, by which an SSH session may come that the tunnel would cut off. */
  readonly isShared: boolean;
  /** The resolvers of this host that are reached through accepted routes, also while these are gone. */
  readonly tunnelledResolvers: readonly TunnelledResolver[];
  /** Peers to which the network gives another endpoint than the one that was applied last. */
  readonly moved: ReadonlySet<PublicKey>;
}

/** The last evaluation of a network. */
interface PreviousEvaluation {
  readonly inputs: DesireInputs;
  readonly wanted: DesiredNetwork;
  /** The device with which there was no step, whatever the time is; undefined where there was one. */
  readonly settled: Device | null | undefined;
}

/** By interface. */
const evaluations = new Map<string, PreviousEvaluation>();

/**
 * The routes that the last evaluation wanted and found there, when they are asked for: a session by them came through the tunnel. Where
 * another program takes such a route away, it is put back whatever sessions there are.
 */
export function recallRoutes(link: string): () => readonly Prefix[] {
  const last = evaluations.get(link);
  if (last === undefined) return () => [];
  const { inputs, wanted } = last;
  return () => {
    const taken = new Set(wanted.taken);
    return [...findNested(inputs.observed, []), ...inputs.recalled].filter((prefix) => taken.has(prefix));
  };
}

/** Drops the last evaluation of a network that was left: there are keys in it. */
export function forgetEvaluation(link: string): void {
  evaluations.delete(link);
}

/**
 * Plans a network. This is the one place that compares a pass with the one before: where all inputs are the same data, the desired
 * state is not computed again; and where nothing differed then, and the device is the same too, there is nothing to plan.
 *
 * @param now seconds since the epoch
 */
export function planInputs(
  inputs: DesireInputs,
  device: Device | null,
  now: number,
): { readonly wanted: DesiredNetwork; readonly steps: readonly Step[] } {
  const link = inputs.state.interface;
  const last = evaluations.get(link);
  const isSame = last !== undefined && sameData(last.inputs, inputs);
  const wanted = isSame ? last.wanted : desireNetwork(inputs);
  const actual = { ...inputs.observed, device };
  const isSettled = isSame && last.settled !== undefined && sameData(last.settled, device);
  const steps = isSettled ? [] : plan(wanted.desired, actual, now, findMoved(wanted, inputs, device));
  const stays = isSettled || (steps.length === 0 && arePeersSettled(wanted.desired, actual));
  if (actual.unread === undefined) evaluations.set(link, { inputs, wanted, settled: stays ? device : undefined });
  return { wanted, steps };
}

/** The peers whose learned endpoint is not kept: the network gives another one, or nothing sent to it can arrive. */
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
      ...{ expired: inputs.expired, mapEnd: findMapEnd(state) },
    },
    constraints,
  );
  const desired = withFormerRoutes(wanted, saved);
  const config = renderConfig(desired.config, { saved: saved && text !== null ? { config: saved, text } : null });
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

/** The routing table for a network's accepted routes; null where they are in the main table. */
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

/** Gathers what of this host's forwarding the packet rules of a network follow from. */
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
    vrf: link?.vrf,
  };
}

/** Lists the networks of this host but one. */
export function othersOf({ interface: link, options }: State, states: readonly State[]): OtherNetwork[] {
  const mayTunnel = options.allowRoutes.some(isDefaultRoute);
  return states
    .filter((other) => other.interface !== link)
    .map((other) => ({
      ...{ interface: other.interface, createdAt: other.createdAt, receipt: other.receipt },
      isConnector: isForwarder(other),
      reached: mayTunnel && other.enabled && isJoined(other) ? findReached(other) : { api: [], endpoints: [] },
      listenPort: other.options.listenPort,
      address: other.membership?.peer.address ?? null,
    }));
}

/** The full tunnel is one of IPv4, through which other networks reach what they reach. */
function findReached(state: Joined): OtherNetwork['reached'] {
  const { membership, resolved } = state;
  // A network goes from one address of a name to another by itself.
  const endpoints = membership.map.peers.flatMap(({ endpoint }): SocketEndpoint[] => {
    if (endpoint === null || isLiteral(endpoint)) return endpoint === null ? [] : [endpoint];
    return addressesOf(endpoint.host, resolved).map((host) => ({ host, port: endpoint.port }));
  });
  return {
    api: locateApi(state).filter((address) => familyOf(address) === 6),
    endpoints: endpoints.filter(({ host }) => familyOf(host) === 6),
  };
}

/** True of a network that is up, or is to be, and forwards packets. */
export function isForwarder(state: State): state is Joined {
  return state.enabled && isJoined(state) && state.enrollment.type === 'connector';
}

/** This host in the map. One that is not listed keeps its address, and has no peers. */
export function findSelf(state: Joined): { self: Peer; map: NetworkMap; listed: boolean } {
  const { membership, keyPair, enrollment } = state;
  const { map, peer } = membership;
  const self = findOwnPeer(map, state);
  if (self) return { self, map, listed: true };
  const { type, endpoint } = enrollment;
  const unlisted: Peer = { ...peer, type, endpoint, publicKey: keyPair.publicKey, routes: [], withdrawn: [] };
  return { self: unlisted, map: { ...map, routes: [], peers: [unlisted] }, listed: false };
}
