import type { Actual, SshClient, Underlay } from '../../core/host-state/actual.ts';
import { maskPrefix, type Prefix } from '../../core/net/cidr.ts';
import { formatInterfaceAddress } from '../../core/net/interface-address.ts';
import { proxyOf } from '../../core/net/proxy.ts';
import type { RouteConstraints } from '../../core/routing/guard.ts';
import { findStubResolvers, thrownFrom } from '../../core/routing/kept-outside.ts';
import { acceptedBy, findNested } from '../../core/routing/nested-prefixes.ts';
import { placeRoutes, type RoutePlacement } from '../../core/routing/place-route.ts';
import { advertisedBy } from '../../core/routing/public-prefixes.ts';
import type { TunnelConfig } from '../../core/wg-quick/tunnel-config.ts';
import type { Joined, State } from '../../store/state/state.ts';
import type { Tools } from '../tools.ts';
import { locateApi } from './resolve-names.ts';
import { parseSaved } from './saved-config.ts';

/** A network that this host joined before another one, and its wg-quick file. */
export interface EarlierNetwork {
  readonly by: string;
  readonly config: TunnelConfig;
}

/** Reads what the networks joined before this one have taken. An edited file concerns its own network alone. */
export async function readEarlier(
  tools: Pick<Tools, 'store'>,
  state: Joined,
  states: readonly State[],
): Promise<readonly EarlierNetwork[]> {
  const earlier = states.filter(
    (other) => other.interface !== state.interface && other.enabled && other.createdAt < state.createdAt,
  );
  const read = await Promise.all(
    earlier.map(async ({ interface: link, membership }) => {
      const config = parseSaved(link, await tools.store.readConfig(link));
      return config === null ? [] : [{ by: `network ${membership?.map.name ?? '?'} (${link})`, config }];
    }),
  );
  return read.flat();
}

export interface ConstraintInputs {
  readonly state: Joined;
  /** The other networks of this host. */
  readonly others: readonly Pick<State, 'interface' | 'createdAt'>[];
  readonly earlier: readonly EarlierNetwork[];
  /** The host without the WireGuard device, whose counters change all the time. */
  readonly observed: Omit<Actual, 'device'>;
  /** Read only where a route or an address is to be added: see {@link evaluateNetwork}. */
  readonly sshClients: readonly SshClient[];
  /** Routes that led into the tunnel a moment ago. */
  readonly recalled: readonly Prefix[];
  /** The last-known-good wg-quick file; null where there is none, or one that cpn would not write. */
  readonly saved: TunnelConfig | null;
  /** Prefixes that `--allow-route` named before, and no longer does. */
  readonly disallowed: readonly Prefix[];
  /** The routing table for accepted routes. Absent or null where they are in the main table. */
  readonly routeTable?: string | null;
}

/** Gathers what a route of this network must not take away from the host. */
export function constrainRoutes({
  state,
  others,
  earlier,
  observed,
  sshClients,
  recalled,
  saved,
  disallowed,
  routeTable = null,
}: ConstraintInputs): RouteConstraints {
  const newerLinks = others.filter((other) => other.createdAt > state.createdAt).map((other) => other.interface);
  const { map, peer } = state.membership;
  const isBelieved = (prefix: Prefix) => !disallowed.includes(prefix);
  const underlay = withoutLinks(observed.underlay, newerLinks);
  return {
    underlay: underlay,
    stubResolvers: findStubResolvers(underlay, state.keptOutside),
    sshClients,
    // Without the host's routes nothing shows what is reached through the tunnel itself, and no prefix is added then.
    api: observed.unread === undefined ? locateApi(state) : [],
    isProxied: proxyOf(state.service) !== null,
    tunnelPrefixes: {
      range: map.cidr,
      own: peer.address,
      present: [...findNested(observed, newerLinks), ...recalled].filter(isBelieved),
      accepted: saved === null ? [] : acceptedBy(saved).filter(isBelieved),
      outside: [...state.keptOutside.map(({ address }) => address), ...thrownFrom(routeTable, observed.throwRoutes)],
      tunnelled: state.tunnelledResolvers.filter(({ route }) => isBelieved(route)),
    },
    taken: earlier.flatMap(({ by, config: { address, peers } }) => {
      const prefixes = [maskPrefix(formatInterfaceAddress(address)), ...peers.flatMap((each) => each.allowedIps)];
      return prefixes.map((prefix) => ({ prefix, by }));
    }),
    newerLinks,
    advertised: advertisedBy(map),
    allowed: state.options.allowRoutes,
    ...(routeTable !== null && {
      isSeparate: inTable(routeTable, () =>
        placeRoutes({ routeTable, newerLinks, allowed: state.options.allowRoutes }, observed),
      ),
    }),
  };
}

/** True of a prefix whose route belongs in the table. Routes are placed only where that matters, as an index of the host's takes time. */
function inTable(table: string, placement: () => RoutePlacement): (prefix: Prefix) => boolean {
  let place: RoutePlacement | undefined;
  return (prefix) => {
    place ??= placement();
    return place(prefix).table === table;
  };
}

/** A network that was joined later yields: its subnet and routes keep nothing away from this one. */
function withoutLinks(underlay: Underlay, links: readonly string[]): Underlay {
  const isOther = ({ link }: { readonly link: string }) => !links.includes(link);
  const { connected, routed } = underlay;
  return { ...underlay, connected: connected.filter(isOther), routed: routed.filter(isOther) };
}
