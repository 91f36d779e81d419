import { findForwarded } from '../../core/forward/forwarded-packets.ts';
import { linkFinder } from '../../core/forward/links-toward.ts';
import type { Actual } from '../../core/host-state/actual.ts';
import {
  allForwardingKey,
  commonFilterKey,
  disabledIpv6Key,
  forwardingKey,
  ipv6Key,
  sourceFilterKey,
  sourceRouteKey,
} from '../../core/host-state/sysctl-keys.ts';
import { findOwnPeer } from '../../core/map/own-peer.ts';
import { localsOf } from '../../core/map/prefix-maps.ts';
import { hostPrefix, isDefaultRoute, type Prefix } from '../../core/net/cidr.ts';
import { isPlainLinkName } from '../../core/net/link-name.ts';
import { assignedRoutes } from '../../core/routing/topology/route-owner.ts';
import { markedSourceKey } from '../../core/routing/tunnel-rules.ts';
import type { ObserveOptions } from '../../host/host.ts';
import type { Joined, State } from '../../store/state/state.ts';
import { isJoined } from '../select.ts';
import { locateApi } from './names/resolve-names.ts';

export function observeOptionsFor(state: State): ObserveOptions {
  const { enrollment, interface: link } = state;
  const isConnector = enrollment.type === 'connector';
  const mayTunnel = state.options.allowRoutes.some(isDefaultRoute);
  const made = state.receipt.flatMap((entry) => (entry.made === 'sysctl' ? [entry.key] : []));
  const sysctls = [
    allForwardingKey,
    forwardingKey(link),
    sourceRouteKey,
    ...(isConnector ? [commonFilterKey, sourceFilterKey(link)] : []),
    ...(mayTunnel ? [markedSourceKey, ipv6Key] : []),
    ...(enrollment.endpoint === null ? [link, 'default'].map(disabledIpv6Key) : []),
    ...made,
  ];
  const hosts = state.options.hosts || state.receipt.some((entry) => entry.made === 'hosts');
  const dns = state.options.dns || state.ownsDns === true;
  const firewall = isConnector ? true : ('if-possible' as const);
  return {
    link,
    firewall,
    sysctls: [...new Set(sysctls)],
    served: servedBy(state),
    concerns: concernsOf(state),
    destinations: isJoined(state) ? locateApi(state) : [],
    hosts,
    dns,
    ...forwardedBy(state),
  };
}

/** The packets that this host must forward. */
function forwardedBy(state: State): Pick<ObserveOptions, 'forwarding'> {
  const map = state.membership?.map;
  const self = map && findOwnPeer(map, state);
  const forwarding = map && self ? findForwarded(map, self, servedBy(state), state.options.probes) : null;
  return forwarding === null ? {} : { forwarding };
}

/** The prefixes of the network, `--allow-route` and `--map`, and the control plane's addresses. */
function concernsOf(state: State): readonly Prefix[] {
  const map = state.membership?.map;
  const { allowRoutes, maps } = state.options;
  const api = isJoined(state) ? locateApi(state).map(hostPrefix) : [];
  const given = map?.peers.flatMap((peer) => peer.given?.allowedIps ?? []) ?? [];
  return [
    ...new Set([
      ...(map ? [map.cidr, ...map.routes] : []),
      ...given,
      ...allowRoutes,
      ...api,
      ...maps.map(({ local }) => local),
    ]),
  ];
}

/** True if an observation covers an update: it has the sysctls of new routes' interfaces. */
export function isComplete({ underlay, sysctls }: Actual, state: Joined): boolean {
  const links = servedBy(state).flatMap(linkFinder(underlay));
  return links.filter(isPlainLinkName).every((link) => forwardingKey(link) in sysctls);
}

/** The prefixes behind this host that it is assigned to serve. */
function servedBy(state: State): readonly Prefix[] {
  if (state.enrollment.type !== 'connector') return [];
  const map = state.membership?.map;
  const self = map && findOwnPeer(map, state);
  return map && self ? localsOf(assignedRoutes(map, self), state.options.maps) : [];
}
