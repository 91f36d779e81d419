import type { Underlay } from '../../core/host-state/actual.ts';
import { formatInterfaceAddress, maskPrefix, type Prefix } from '../../core/net/cidr.ts';
import { proxyOf } from '../../core/net/proxy.ts';
import type { RouteConstraints } from '../../core/routing/guard.ts';
import { findStubResolvers, thrownFrom } from '../../core/routing/kept-outside.ts';
import { acceptedBy, findNested } from '../../core/routing/nested-prefixes.ts';
import { placeRoutes, type RoutePlacement } from '../../core/routing/place-route.ts';
import { advertisedBy } from '../../core/routing/public-prefixes.ts';
import type { Joined, State } from '../../store/state/state.ts';
import type { ConstraintInputs, EarlierNetwork } from '../evaluation-cache.ts';
import type { Tools } from '../tools.ts';
import { locateApi } from './names/resolve-names.ts';

/** The prefixes of networks that joined earlier. An edited file affects only its own network. */
export async function readEarlier(
  tools: Pick<Tools, 'store' | 'savedConfigs'>,
  state: Joined,
  states: readonly State[],
): Promise<readonly EarlierNetwork[]> {
  const earlier = states.filter(
    (other) => other.interface !== state.interface && other.enabled && other.createdAt < state.createdAt,
  );
  const read = await Promise.all(
    earlier.map(async ({ interface: link, membership }) => {
      const config = await tools.savedConfigs.read(tools.store, link);
      return config === null ? [] : [{ by: `network ${membership?.map.name ?? '?'} (${link})`, config }];
    }),
  );
  return read.flat();
}

/** Collects what a route of this network must not take away from the host. */
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
    // Without the host's routes, it is unknown what the tunnel carries. No prefix is added then.
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

/** True if a prefix is in the table. `placement` is called late: indexing the routes takes time. */
function inTable(table: string, placement: () => RoutePlacement): (prefix: Prefix) => boolean {
  let place: RoutePlacement | undefined;
  return (prefix) => {
    place ??= placement();
    return place(prefix).table === table;
  };
}

/** Removes the subnets and routes of later networks, which yield to this network. */
function withoutLinks(underlay: Underlay, links: readonly string[]): Underlay {
  const isOther = ({ link }: { readonly link: string }) => !links.includes(link);
  const { connected, routed } = underlay;
  return { ...underlay, connected: connected.filter(isOther), routed: routed.filter(isOther) };
}
