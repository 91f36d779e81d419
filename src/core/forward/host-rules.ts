import type { Link, SshClient, Underlay } from '../host-state/actual.ts';
import type { NetworkMap, Peer } from '../map/model.ts';
import type { Options } from '../map/options.ts';
import { behindRoutes, isMapped, type PrefixMap } from '../map/prefix-maps.ts';
import { type Address, addressIn, covers, familyOf, isDefaultRoute, type Prefix, rangeOf } from '../net/cidr.ts';
import { type NumberRange, outsideOf } from '../net/number-ranges.ts';
import { assignedRoutes } from '../routing/topology/route-owner.ts';
import { isDirect } from '../routing/topology/via-connectors.ts';
import { resolveAccess, resolveDevices } from '../rules/resolve.ts';
import type { AccessFilter } from './access/lookups.ts';
import { accessFilter, type ServiceSocket } from './access-filter.ts';
import { arrivalRules } from './arrival-rules.ts';
import { destinationRules, probeRules } from './direct-path-rules.ts';
import { forwardingRules, localRules } from './forwarding-rules.ts';
import type { HostForwarding, Ingress } from './ingress.ts';
import type { Ipv6Exceptions } from './ipv6-outside.ts';
import { ipv6Rules } from './ipv6-rules.ts';
import { findKeptSessions, type KeptSession } from './kept-sessions.ts';
import { findEntrances, linkFinder } from './links-toward.ts';
import { chains, type PacketRule } from './packet-rule.ts';
import { returnPathRules } from './return-path-rules.ts';

export interface HostRulesInputs {
  readonly link: string;
  readonly map: NetworkMap;
  readonly self: Peer;
  readonly options: Pick<Options, 'masquerade' | 'acceptRoutes' | 'maps'>;
  /** Peers that do not answer here, and are reached through another connector. */
  readonly relayedPeers: readonly Peer[];
  readonly underlay: Underlay;
  /** The interfaces that the routes of a connector use. */
  readonly ingress: readonly Ingress[];
  /** Served routes for which another connector is in service; absent for none. */
  readonly standby?: readonly Prefix[];
  /** The routes into the tunnel. */
  readonly routes: readonly Prefix[];
  /** True if packets of other hosts pass through the tunnel's interface. */
  readonly forwards: boolean;
  readonly vrf: Link['vrf'];
  /** The IPv6 that a full tunnel does not reject; null if it rejects none. */
  readonly ipv6: Ipv6Exceptions | null;
  readonly others: HostForwarding['others'];
  /** SSH sessions to this host, if rules that could end some are to be loaded. */
  readonly sessions: readonly SshClient[];
  readonly deadlines: readonly PacketRule[];
  /** True if the kernel accepts IPv4 source routes. */
  readonly takesSourceRoutes: boolean;
  /** The control plane's addresses and ports, as this host reaches it; absent for none. */
  readonly services?: readonly ServiceSocket[];
  /** This host's probe address; absent or null without one. */
  /** True to record the destinations in the network; absent for false. */
  readonly recordsDestinations?: boolean;
  readonly probeAddress?: Address | null;
}

/** The packet rules, and the sessions that would certainly end without their exceptions. */
export interface HostRules {
  readonly rules: readonly PacketRule[];
  /** What the rules of a closed network refer to; absent in an open one. */
  readonly access?: AccessFilter;
  readonly kept: readonly KeptSession[];
}

/** Composes all packet rules of a host in one network, in order. No other place composes them. */
export function hostRules(inputs: HostRulesInputs): HostRules {
  const { link, map, self, underlay, forwards } = inputs;
  const served = self.type === 'connector' ? assignedRoutes(map, self) : [];
  const ofFamily = served.filter((route) => familyOf(route) === familyOf(map.cidr) && !isDefaultRoute(route));
  const entering = inputs.deadlines.filter(({ chain }) => chain === 'arriving');
  const passing = inputs.deadlines.filter(({ chain }) => chain !== 'arriving');
  const forwarding =
    self.type === 'connector'
      ? forwardingRules({ ...inputs, deadlines: passing })
      : forwards
        ? localRules(link, self, passing)
        : [];
  const internal = underlay.links.flatMap(({ name, isInternal }) => (isInternal ? [name] : []));
  const behind = behindRoutes(ofFamily, inputs.options.maps);
  const locals = behind.map(({ local }) => local);
  const entrances = locals.length === 0 ? [] : findEntrances(locals, linkFinder(underlay));
  const kept = findKeptSessions(inputs.sessions, {
    at: self.address,
    // Whether a session to a mapped LAN came by its route, and so goes on, is unknown.
    served: behind.filter((each) => !isMapped(each)).map(({ route }) => route),
    tunnelled: [map.cidr, ...inputs.routes],
    admitted: [...internal, ...entrances.flatMap(({ by }) => by)],
    underlay,
  });
  const arrival = arrivalRules(
    {
      at: self.address,
      range: map.cidr,
      internal,
      vrf: inputs.vrf ?? null,
      twins: inputs.others.flatMap(({ link: other, address }) => (address === self.address ? [other] : [])),
      served,
      entrances,
      forwards,
      hasOtherFamily: inputs.routes.some((route) => familyOf(route) !== familyOf(map.cidr)),
      addresses: underlay.addresses,
      kept,
      takesSourceRoutes: inputs.takesSourceRoutes,
    },
    link,
  );
  const returning = inputs.routes.some(isDefaultRoute) ? returnPathRules(link, self.address, map.cidr) : [];
  const outside = inputs.ipv6 === null ? [] : ipv6Rules(inputs.ipv6);
  // A kept SSH session still ends when its peer expires.
  const closed = closedRules(inputs, behind);
  const { probeAddress = null } = inputs;
  const probes = probeAddress === null ? [] : probeRules(link, probeAddress, closed !== null);
  const recorded = inputs.recordsDestinations ? destinationRules(link, map.cidr) : [];
  const rules = [
    ...[...entering, ...probes, ...arrival, ...returning, ...outside, ...forwarding, ...(closed?.rules ?? [])],
    ...recorded,
  ];
  return {
    rules: inputs.vrf === undefined ? rules : rules.map((rule) => matchMember(rule, link)),
    ...(closed && { access: closed.filter }),
    kept: kept.filter(({ local }) => !behind.some((each) => isMapped(each) && covers(each.local, local))),
  };
}

/**
 * Rewrites a rule of a tunnel in a VRF. There, the kernel gives packets to and through this host
 * the VRF as their incoming interface, and the tunnel as its member (vrf_ip_rcv in
 * drivers/net/vrf.c).
 */
function matchMember(rule: PacketRule, link: string): PacketRule {
  if (!/ hook (?:input|forward) /.test(chains[rule.chain])) return rule;
  const text = rule.text.replaceAll(`iifname "${link}"`, `meta sdifname "${link}"`);
  return { ...rule, text: text.replaceAll('iifname != @', 'meta sdifname != @') };
}

/** The packet filter of a closed network; null in an open one. */
function closedRules({ link, map, self, services = [] }: HostRulesInputs, behind: readonly PrefixMap[]) {
  const { rules } = map;
  if (rules === undefined) return null;
  const served = self.type === 'connector' ? assignedRoutes(map, self) : [];
  const ends = resolveAccess({ ...map, rules }, self, served);
  const devices = map.peers.filter((peer) => peer.via && !peer.enforcesRules && isDirect(peer, self, map));
  const firstOf = ({ first }: NumberRange) => addressIn(familyOf(map.cidr), first);
  const mapped = behind.filter(isMapped).map(({ local }) => rangeOf(local));
  const inside = [map.cidr, ...map.routes.filter((route) => !isDefaultRoute(route))];
  return accessFilter({
    ...{ link, range: map.cidr, own: self.address, ends },
    devices: self.type === 'connector' ? resolveDevices({ ...map, rules }, self, devices) : [],
    services: services.filter(({ address }) => inside.some((prefix) => covers(prefix, address))),
    isLan: (part) => behind.some(({ route }) => covers(route, firstOf(part))),
    toLocal: (part) => {
      const at = firstOf(part);
      const found = behind.find((each) => isMapped(each) && covers(each.route, at));
      // The addresses of a mapped LAN stand for its route alone.
      if (!found) return mapped.reduce((parts, local) => parts.flatMap((each) => outsideOf(each, local)), [part]);
      const by = rangeOf(found.local).first - rangeOf(found.route).first;
      return [{ first: part.first + by, last: part.last + by }];
    },
  });
}
