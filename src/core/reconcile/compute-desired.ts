import { presharedKeyOf } from '../crypto/network-secret.ts';
import type { Secret } from '../crypto/secret.ts';
import { ageRules, expiryRules } from '../forward/deadline-rules.ts';
import { hostRules } from '../forward/host-rules.ts';
import { findIngresses, type ReachedOutside } from '../forward/ingress.ts';
import { findIpv6Exceptions } from '../forward/ipv6-outside.ts';
import { isReturnPathRule } from '../forward/return-path-rules.ts';
import { findLimit } from '../health/path-mtu.ts';
import { tunnelMark } from '../host-state/marks.ts';
import type { Rule } from '../host-state/policy-rule.ts';
import {
  allForwardingKey,
  disabledIpv6Key,
  ipv6Key,
  looseFilter,
  sourceFilterKey,
  sourceRouteKey,
} from '../host-state/sysctl-keys.ts';
import { withoutRemoved } from '../map/map-validation.ts';
import type { NetworkMap, Peer } from '../map/model.ts';
import { behindRoutes, findMapConflicts, isMapped, localsOf } from '../map/prefix-maps.ts';
import { renderBlock } from '../names/hosts-block.ts';
import { usableFirst } from '../names/resolved-names.ts';
import {
  familyOf,
  formatInterfaceAddress,
  hostPrefix,
  type InterfaceAddress,
  isDefaultRoute,
  lengthOf,
  maskPrefix,
  type Prefix,
} from '../net/cidr.ts';
import { isLoopback } from '../net/endpoint.ts';
import { isForProbes, probeAddressOf, probeRange } from '../paths/probe-address.ts';
import { findRangeOverlap, judgeRoutes, type RouteConstraints } from '../routing/guard.ts';
import { describeOutside, type KeptOutside, outsideOf } from '../routing/kept-outside.ts';
import { checkEndpoints, insideFinder, withoutLost } from '../routing/lost-endpoints.ts';
import { locateOutside } from '../routing/reach-outside.ts';
import { explainFullTunnel, type RouteReport, reportRefused, reportRoute } from '../routing/route-report.ts';
import { type StrictExceptions, strictRules } from '../routing/strict-rules.ts';
import { judgeService } from '../routing/topology/in-service.ts';
import { assignedRoutes } from '../routing/topology/route-owner.ts';
import { type DirectPeer, reachPeers } from '../routing/topology/topology.ts';
import { mayHavePath } from '../routing/topology/via-connectors.ts';
import { markedSourceKey, tunnelRules } from '../routing/tunnel-rules.ts';
import { findOuterResolvers } from '../routing/tunnelled-resolvers.ts';
import type { DesiredPeer, TunnelConfig } from '../wg-quick/parse.ts';
import { chooseDns } from './choose-dns.ts';
import { aliasOf, type Desired, type DesiredInputs, findRoutes } from './desired.ts';

/** Computes the desired state of one network, without the prefixes that the guard refuses. */
export function computeDesired(intent: DesiredInputs, constraints: RouteConstraints): Desired {
  const { link, self, keyPair, options, failed } = intent;
  const { map: listed, left } = withoutUnusable(intent);
  const map = withoutRemoved(listed, intent.expired ?? []);
  const { refuse, findOutside } = judgeRoutes(constraints);
  const rangeRefused = refuse(map.cidr);
  // A range of one address is this host's own: the service did not give the network's range.
  const takesRange = rangeRefused === null && lengthOf(map.cidr) < 32;
  const { connected } = constraints.underlay;
  const isInside = insideFinder({ map, self, options, takesRange, connected }, refuse);
  const unreachable = new Set(intent.unreachable);
  const { resolved, avoided } = usableFirst(
    intent.resolved,
    (address) => !unreachable.has(address) && !isInside(address),
  );
  const verdicts = checkEndpoints(
    { map, self, options, allowed: constraints.allowed, resolved, takesRange, connected },
    refuse,
  );
  const view = { map: withoutLost(map, verdicts), self, acceptRoutes: options.acceptRoutes, failed, takesRange };
  const { hasNft, vrf, others, reached = noneReached } = intent.forwarding;
  // Without packet rules, a closed network carries nothing.
  const isSilent = map.rules !== undefined && !hasNft && !intent.forwarding.ignoresRules;
  // Without a named relay, a switch of paths would change the sender's address.
  const mayHavePaths = intent.paths !== undefined && map.relay !== undefined && !isSilent;
  const paths = mayHavePaths ? (intent.paths ?? []) : [];
  const topology = reachPeers({ ...view, paths });
  const isConnector = self.type === 'connector';
  const rejectsIpv6 = canRejectIpv6(intent) && !options.allowIpv6Outside;
  const judged = topology.routes.flatMap((route) =>
    reportRoute(route, { map, failed, tunnelled: verdicts.tunnelled }, refuse),
  );
  const outside = judged.filter(({ state }) => state === 'taken').flatMap(({ prefix }) => findOutside(prefix));
  const keptOutside = [...new Map(outside.map((each) => [each.address, each])).values()];
  const reports = judged.map((report) => withOutside(report, outsideOf([report.prefix], keptOutside)));
  const refused = new Set([
    // If the whole range is refused or unknown, its addresses are judged one by one, so that the
    // others work.
    ...reports.filter((report) => report.state === 'refused').map((report) => report.prefix),
    ...(takesRange ? [] : addressesIn(map).filter((prefix) => refuse(prefix) !== null)),
  ]);
  const address: InterfaceAddress = { address: self.address, length: rangeRefused === null ? lengthOf(map.cidr) : 32 };
  const locate = locateOutside({ map: intent.map, resolved });
  const limit = (reaches: readonly DirectPeer[]) =>
    reaches.map((reach) => ({
      ...reach,
      allowedIps: isSilent ? [] : reach.allowedIps.filter((prefix) => !refused.has(prefix)),
    }));
  const tunnel = limit(topology.reaches);
  const configure = ({ peer, endpoint, allowedIps, keepalive }: DirectPeer): DesiredPeer => ({
    publicKey: peer.publicKey,
    presharedKey: sharePresharedKey(peer, intent),
    endpoint: locate(endpoint),
    allowedIps,
    keepalive,
  });
  const peers = tunnel.map(configure);
  const routes = findRoutes({ address, peers });
  const isFull = routes.some(isDefaultRoute);
  const { underlay } = constraints;
  const outer = findOuterResolvers(underlay, [...routes, maskPrefix(formatInterfaceAddress(address))], keptOutside);
  const isDnsInside = outer.length < underlay.resolvers.length && outer.every(isLoopback);
  const served = assignedRoutes(map, self).filter((route) => familyOf(route) === familyOf(map.cidr));
  const mapped = new Map(
    behindRoutes(served, options.maps)
      .filter(isMapped)
      .map(({ route, local }) => [route, local]),
  );
  const explained = reports.map((each): RouteReport => {
    const local = mapped.get(each.prefix);
    if (local !== undefined) return { ...each, local };
    return each.state === 'taken' && isDefaultRoute(each.prefix)
      ? { ...each, reason: explainFullTunnel(rejectsIpv6, isDnsInside) }
      : each;
  });
  const ingresses = findIngresses(localsOf(served, options.maps), underlay, intent.forwarding);
  const { ingress } = ingresses;
  // Also true for a host that forwards for every interface, such as one with containers, if packet
  // rules can limit that.
  const forwards = isConnector || (intent.forwarding.sysctls[allForwardingKey] === '1' && hasNft);
  const { relay, relayedPeers } = topology;
  const ipv6 =
    isFull && rejectsIpv6
      ? findIpv6Exceptions({
          link,
          underlay,
          ...{ endpoints: reached.endpoints, ports: reached.ports },
          api: [...constraints.api, ...reached.api],
          isStrict: intent.strict !== null,
        })
      : null;
  const { sessions } = intent;
  // The rules for an expired peer stay: another connector may still relay its packets.
  const deadlines = [
    ...expiryRules(link, listed, self, tunnel.map(withoutProbes)),
    ...(isConnector ? ageRules(link, intent.mapEnd ?? null, self.address) : []),
  ];
  const takesSourceRoutes = intent.forwarding.sysctls[sourceRouteKey] === '1';
  const { services } = intent;
  const judge = judgeService({ map, self, failed });
  const passing = {
    ingress,
    standby: isConnector ? served.filter((route) => judge(route).is === 'standby') : [],
    routes,
    forwards,
    vrf,
    others,
    ipv6,
    sessions,
    deadlines,
    takesSourceRoutes,
    ...(services && { services }),
  };
  const fittedMtu = fitMtu(underlay.underlayMtu);
  const pathMtu = options.mtu === null ? findLimit(intent.pathMtu, underlay, fittedMtu) : null;
  const mtu = options.mtu ?? pathMtu?.mtu ?? fittedMtu;
  const triable = mayHavePaths ? map.peers.filter((peer) => mayHavePath(peer, self, map)) : [];
  const probeAddress =
    triable.length > 0 && map.id !== null && hasIpv6(intent, mtu) ? probeAddressOf(map.id, self.id) : null;
  const given = {
    link,
    map,
    self,
    options,
    relayedPeers,
    underlay,
    ...passing,
    probeAddress,
    recordsDestinations: triable.length > 0,
  };
  const packetRules = isConnector || hasNft ? hostRules(given) : null;
  const config: TunnelConfig = {
    privateKey: keyPair.privateKey,
    listenPort: options.listenPort,
    fwmark: isFull ? tunnelMark : null,
    mtu,
    address,
    peers,
  };
  return {
    link,
    alias: aliasOf(map),
    keyPair,
    config,
    savedConfig: paths.length === 0 ? config : { ...config, peers: limit(reachPeers(view).reaches).map(configure) },
    probeAddress: probeAddress && { address: probeAddress, length: lengthOf(probeRange) },
    triable: new Set(triable.map(({ publicKey }) => publicKey)),
    routes,
    previous: [],
    allowed: constraints.allowed,
    routeTable: intent.routeTable,
    keptOutside,
    newerLinks: constraints.newerLinks,
    rules: isFull
      ? rulesOf(
          intent.strict,
          { ...constraints, underlay: { ...underlay, resolvers: outer } },
          packetRules?.rules.some(isReturnPathRule) ?? false,
        )
      : [],
    isConnector,
    forwards,
    firewall: packetRules && {
      ...{ link, rules: packetRules.rules },
      ...(packetRules.access && { access: packetRules.access }),
    },
    keptSessions: packetRules?.kept ?? [],
    ipv6: isFull
      ? { exceptions: ipv6, isAllowed: options.allowIpv6Outside, isThere: ipv6Key in intent.forwarding.sysctls }
      : null,
    ...ingresses,
    sysctls: {
      ...(isConnector && { [sourceFilterKey(link)]: looseFilter }),
      ...(isFull && { [markedSourceKey]: '1' }),
    },
    hosts: options.hosts ? renderBlock(link, map, intent.label, intent.labels) : null,
    ...chooseDns(intent, { map: intent.map, reports: [...left, ...explained], keptOutside, constraints }),
    report: [...(rangeRefused === null ? [] : [reportRefused(map.cidr, rangeRefused)]), ...left, ...explained],
    relay,
    relayedPeers: relayedPeers.flatMap((peer) => (relay ? [{ peer, via: relay }] : [])),
    lostEndpoints: verdicts.lost,
    resolved,
    avoided,
    fittedMtu,
    pathMtu,
  };
}

/** No packet of a probe address is forwarded. */
function withoutProbes<Each extends { readonly allowedIps: readonly Prefix[] }>(reach: Each): Each {
  return { ...reach, allowedIps: reach.allowedIps.filter((prefix) => !isForProbes(prefix)) };
}

/** Adds to the report of an accepted route the addresses in it that stay outside the tunnel. */
function withOutside(report: RouteReport, outside: readonly KeptOutside[]): RouteReport {
  if (report.state !== 'taken' || isDefaultRoute(report.prefix) || outside.length === 0) return report;
  const reasons = [...(report.reason === null ? [] : [report.reason]), ...outside.map(describeOutside)];
  return { ...report, reason: reasons.join('; ') };
}

/**
 * Splits off the routes that overlap the network's own range, and those that this connector cannot
 * serve because of a map: returns the map without them, and a report of each.
 */
function withoutUnusable({ map, self, options }: DesiredInputs): { map: NetworkMap; left: RouteReport[] } {
  const conflicts = findMapConflicts(map, assignedRoutes(map, self), options.maps);
  const left = map.routes.flatMap((prefix) => {
    const reason = findRangeOverlap(prefix, map) ?? conflicts.get(prefix) ?? null;
    return reason === null ? [] : [reportRefused(prefix, reason)];
  });
  if (left.length === 0) return { map, left };
  const unusable = new Set(left.map(({ prefix }) => prefix));
  return { map: { ...map, routes: map.routes.filter((prefix) => !unusable.has(prefix)) }, left };
}

/**
 * The largest packet that fits: 80 bytes (IPv6, UDP and WireGuard, as in wg-quick) below the
 * underlay, at most what fits 1,500 bytes, at least what IPv6 needs (RFC 8200).
 */
function fitMtu(underlay: number | null): number {
  return Math.max(1280, Math.min(1420, (underlay ?? 1500) - 80));
}

/** True if the interface has IPv6, or will have it: it needs an MTU of 1280 (RFC 8200). */
function hasIpv6({ link, forwarding: { sysctls } }: DesiredInputs, mtu: number): boolean {
  const value = sysctls[disabledIpv6Key(link)] ?? sysctls[disabledIpv6Key('default')];
  return value === '0' && mtu >= 1280;
}

/** True if packet rules can be loaded here, and the kernel has IPv6. */
function canRejectIpv6({ forwarding: { hasNft, sysctls } }: DesiredInputs): boolean {
  return hasNft && ipv6Key in sysctls;
}

const noneReached: ReachedOutside = { api: [], endpoints: [], ports: [] };

function rulesOf(strict: StrictExceptions | null, constraints: RouteConstraints, marksOutside: boolean): Rule[] {
  const rules = tunnelRules(constraints, marksOutside);
  return strict === null ? rules : strictRules(rules, strict);
}

/**
 * A key derived from the network secret takes precedence: the service has seen the keys that it
 * sent.
 */
function sharePresharedKey(peer: Peer, { networkSecret, map, keyPair }: DesiredInputs): Secret | null {
  if (networkSecret === null) return peer.given?.presharedKey ?? null;
  return presharedKeyOf(networkSecret, map.id, keyPair.publicKey, peer.publicKey);
}

function addressesIn({ peers }: NetworkMap): Prefix[] {
  return [...peers.map((peer) => hostPrefix(peer.address)), ...peers.flatMap((peer) => peer.given?.allowedIps ?? [])];
}
