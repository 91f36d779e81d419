import type { Secret } from '../../core/crypto/secret.ts';
import { WrongUsage } from '../../core/errors/index.ts';
import { findPeersCutOff } from '../../core/health/compare-secrets.ts';
import { formatProbeTarget, mostProbes, type Options, type ProbeTarget } from '../../core/map/options.ts';
import { ownKeys } from '../../core/map/own-peer.ts';
import { checkMaps, findMapConflicts, formatPrefixMap, type PrefixMap } from '../../core/map/prefix-maps.ts';
import type { Prefix } from '../../core/net/cidr.ts';
import type { Endpoint } from '../../core/net/endpoint.ts';
import type { ServiceAddress } from '../../core/net/service-address.ts';
import type { Joined, State } from '../../store/state/state.ts';
import { withOptions } from '../pins.ts';
import { refuseUnfixedPort } from '../reconcile/open-ports.ts';
import { ownTag } from '../report-secret.ts';
import type { Tools } from '../tools.ts';
import { findOwnEndpoint } from './own-endpoint.ts';

export interface OptionChanges {
  readonly options: Partial<Omit<Options, 'allowRoutes' | 'probes' | 'maps'>>;
  readonly allowRoutes: readonly Prefix[];
  /** Removed from the prefixes allowed so far. */
  readonly refuseRoutes: readonly Prefix[];
  readonly addProbes: readonly ProbeTarget[];
  readonly dropProbes: readonly ProbeTarget[];
  readonly addMaps: readonly PrefixMap[];
  /** The routes whose maps are removed. */
  readonly dropMaps: readonly Prefix[];
  /** Null removes it. */
  readonly networkSecret?: Secret | null;
  /** Null for no endpoint. */
  readonly endpoint?: Endpoint | 'auto' | null;
  readonly name?: string;
  /** The new address of the control plane. */
  readonly service?: ServiceAddress;
  /** The proxy to it; kept if omitted. */
  readonly proxy?: NonNullable<ServiceAddress['proxy']>;
  /** The only CAs, in PEM, for its certificate; null for this machine's, kept if omitted. */
  readonly authorities?: readonly string[] | null;
}

/** Changes with a known endpoint of this host. */
export type ResolvedChanges = Omit<OptionChanges, 'endpoint'> & { readonly endpoint?: Endpoint | null };

/** Returns the prefixes that were removed from `--allow-route`. */
export function findDisallowed(before: Pick<State, 'options'>, after: Pick<State, 'options'>): readonly Prefix[] {
  return before.options.allowRoutes.filter((prefix) => !after.options.allowRoutes.includes(prefix));
}

/** Determines the endpoint that `auto` stands for. */
export async function resolveEndpoint(
  tools: Pick<Tools, 'host'>,
  state: Joined,
  changes: OptionChanges,
): Promise<ResolvedChanges> {
  const { endpoint, ...others } = changes;
  if (endpoint === undefined) return others;
  const options = { ...state.options, ...changes.options };
  return { ...others, endpoint: await findOwnEndpoint(tools, { endpoint, service: state.service, options }) };
}

/** Describes the flags that change nothing on this host, each with the reason. */
export function describeIneffective(
  { interface: link, options, enrollment }: Joined,
  changes: OptionChanges,
): string[] {
  const given = [
    ...(changes.options.masquerade === undefined ? [] : ['--masquerade']),
    ...(changes.dropProbes.length === 0 ? [] : ['--drop-probe']),
    ...(changes.dropMaps.length === 0 ? [] : ['--drop-map']),
  ];
  if (enrollment.type !== 'connector') {
    return given.map((flag) => `${flag} has no effect: ${link} is joined as ${enrollment.type}, not as a connector`);
  }
  const probed = options.probes.map(formatProbeTarget);
  const unknown = changes.dropProbes.map(formatProbeTarget).filter((probe) => !probed.includes(probe));
  const unmapped = changes.dropMaps.filter((route) => !options.maps.some((map) => map.route === route));
  return [
    ...unknown.map((probe) => `--drop-probe ${probe} has no effect: ${link} does not probe it`),
    ...unmapped.map((route) => `--drop-map ${route} has no effect: ${link} does not map it`),
  ];
}

/** The peers that a change of the network secret cuts off. */
export interface SecretLosses {
  readonly interface: string;
  readonly peers: readonly string[];
  readonly isRemoval: boolean;
}

/** Null if the change cuts off no peer, as far as the last map shows. */
export function findSecretLosses(
  state: Joined,
  { networkSecret }: Pick<OptionChanges, 'networkSecret'>,
): SecretLosses | null {
  if (networkSecret === undefined || !state.enabled) return null;
  const { map } = state.membership;
  const own = ownKeys(state);
  const others = map.peers.filter(({ publicKey }) => !own.includes(publicKey));
  const cutOff = findPeersCutOff(map, ownTag(state), ownTag({ networkSecret }), others);
  if (cutOff.length === 0) return null;
  return { interface: state.interface, peers: cutOff.map(({ name }) => name), isRemoval: networkSecret === null };
}

/**
 * Returns the changed state. Host and map stay, except for the effect of pins on the map.
 *
 * @throws WrongUsage if the changes conflict with this host's state
 */
export function withChanges(state: Joined, changes: ResolvedChanges): Joined {
  const { options, enrollment, membership } = state;
  const { endpoint = enrollment.endpoint, name = enrollment.name, networkSecret = state.networkSecret } = changes;
  const isFollowing = options.listenPort === (enrollment.endpoint?.port ?? null);
  const { listenPort: chosen = isFollowing ? null : options.listenPort } = changes.options;
  // Peers dial the endpoint's port.
  const port = chosen ?? endpoint?.port ?? null;
  const { refuseRoutes, dropProbes } = changes;
  const dropped = new Set(dropProbes.map(formatProbeTarget));
  const added = new Set(changes.addProbes.map(formatProbeTarget));
  const kept = options.probes.filter(
    (probe) => !dropped.has(formatProbeTarget(probe)) && !added.has(formatProbeTarget(probe)),
  );
  const probes = [...kept, ...changes.addProbes];
  if (changes.addProbes.length > 0 && enrollment.type !== 'connector') {
    throw new WrongUsage(
      `--probe is for the LAN behind a connector, and ${state.interface} is joined as ${enrollment.type}`,
    );
  }
  if (probes.length > mostProbes)
    throw new WrongUsage(`${probes.length} hosts would be probed; at most ${mostProbes} can be`);
  const maps = mergeMaps(state, changes);
  const allowRoutes = [...new Set([...options.allowRoutes, ...changes.allowRoutes])].filter(
    (prefix) => !refuseRoutes.includes(prefix),
  );
  const changed = { ...options, ...changes.options, listenPort: port, allowRoutes, probes, maps };
  refuseUnfixedPort(changed);
  const next = withOptions(
    { ...state, networkSecret, enrollment: { ...enrollment, name, endpoint } },
    changed,
  ) as Joined;
  if (changes.name === undefined) return next;
  return { ...next, membership: { ...next.membership, peer: { ...membership.peer, name } } };
}

/** An added map replaces that of the same route. */
function mergeMaps(
  { interface: link, options, enrollment, membership: { map } }: Joined,
  { addMaps, dropMaps }: Pick<OptionChanges, 'addMaps' | 'dropMaps'>,
): readonly PrefixMap[] {
  const replaced = new Set([...dropMaps, ...addMaps.map(({ route }) => route)]);
  const maps = [...options.maps.filter(({ route }) => !replaced.has(route)), ...addMaps];
  if (addMaps.length === 0) return maps;
  if (enrollment.type !== 'connector')
    throw new WrongUsage(`--map is for the LAN behind a connector, and ${link} is joined as ${enrollment.type}`);
  checkMaps(maps);
  for (const each of addMaps) {
    const [reason] = findMapConflicts(map, [each.route], [each]).values();
    if (reason !== undefined)
      throw new WrongUsage(`--map ${formatPrefixMap(each)} cannot apply: ${each.route} ${reason}`);
  }
  return maps;
}
