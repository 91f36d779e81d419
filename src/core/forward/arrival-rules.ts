import {
  type Address,
  addressAt,
  familyOf,
  hostPrefix,
  isDefaultRoute,
  lengthOf,
  type Prefix,
  rangeOf,
  restorePrefix,
} from '../net/cidr.ts';
import { isPlainLinkName } from '../net/link-name.ts';
import type { Entrance } from './entrances.ts';
import type { KeptSession } from './kept-sessions.ts';
import { widest } from './nft-words.ts';

/** Rules for packets as they arrive, for this host or for another one. Connections that are known are judged like new ones. */
export type ArrivalRule =
  /** Refuses packets with a source route: the kernel gives them their next destination after all rules for arriving packets. */
  | { readonly rule: 'refuse-source-routes'; readonly option: 'lsrr' | 'ssrr' }
  /** Lets an SSH session go on that the next rules would end; it begins no connection. */
  | ({ readonly rule: 'accept-session' } & KeptSession)
  /** Refuses what other interfaces than these bring for the tunnel address. */
  | { readonly rule: 'refuse-neighbours'; readonly at: Address; readonly except: readonly string[] }
  /** Refuses what the interfaces of a served LAN bring for the tunnel address from outside that LAN. */
  | {
      readonly rule: 'refuse-outside-lan';
      readonly at: Address;
      readonly by: readonly string[];
      readonly from: readonly Prefix[];
    }
  /** Refuses what comes from the tunnel for other destinations than these: on a host that forwards nothing. */
  | { readonly rule: 'refuse-other-destinations'; readonly except: readonly Prefix[] }
  /**
   * Refuses what comes from the tunnel for another address of this host than these. Answers to what began here pass. `own` are the
   * host's addresses; null leaves them to the kernel.
   */
  | {
      readonly rule: 'refuse-other-addresses' | 'refuse-other-addresses-untracked';
      readonly except: readonly Prefix[];
      readonly own: readonly Address[] | null;
    }
  /** Refuses what comes from the tunnel and another program redirects, unless it was for `except` or outside `within`. */
  | { readonly rule: 'refuse-redirected'; readonly except: readonly Prefix[]; readonly within: readonly Prefix[] }
  /** Refuses what comes from the tunnel in the other family than the network's: all of it, or all but answers. */
  | { readonly rule: 'refuse-family' | 'refuse-family-begun' | 'refuse-family-untracked'; readonly except: Prefix };

/** What the rules for arriving packets follow from. */
export interface Arrival {
  /** This host's address in the network, and the network's range. */
  readonly at: Address;
  readonly range: Prefix;
  /** The interfaces that lead to containers, pods and virtual machines of this host alone. */
  readonly internal: readonly string[];
  /** The VRF of the tunnel; null without one. */
  readonly vrf: string | null;
  /** The interfaces of other networks that gave this host the same address. */
  readonly twins: readonly string[];
  /** The prefixes that this host serves, and where they come in; of a host that is no connector, none. */
  readonly served: readonly Prefix[];
  readonly entrances: readonly Entrance[];
  /** Whether packets of others pass through the tunnel's interface. */
  readonly forwards: boolean;
  /** Whether routes of the other family lead into the tunnel: then there are answers in it. */
  readonly hasOtherFamily: boolean;
  /** The addresses of this host outside its tunnels. */
  readonly addresses: readonly Address[];
  readonly kept: readonly KeptSession[];
  /** Whether the kernel takes the source routes of IPv4. */
  readonly takesSourceRoutes: boolean;
}

/**
 * The rules for packets that arrive at a host: only the tunnel and the host itself reach the tunnel address, and the tunnel reaches only
 * that address and what the host serves. They judge a packet by the destination that it has on the wire.
 *
 * The interfaces that may reach the tunnel address are listed, not those that may not. A new network card is closed from its first
 * packet; the bridge of new containers is open after the pass that its link event starts.
 *
 * A host that forwards nothing needs no connection tracking for them, which would track all connections of the host.
 */
export function arrivalRules(arrival: Arrival, link: string): readonly ArrivalRule[] {
  const { at, internal, vrf, twins, entrances } = arrival;
  const byLan = entrances.flatMap(({ by }) => by);
  const except = [link, 'lo', ...(vrf === null ? [] : [vrf]), ...twins, ...internal, ...byLan].filter(isPlainLinkName);
  return [
    ...(arrival.takesSourceRoutes ? sourceRoutes : []),
    ...arrival.kept.map((session) => ({ rule: 'accept-session', ...session }) as const),
    { rule: 'refuse-neighbours', at, except: [...new Set(except)] },
    ...mergeEntrances(entrances)
      .filter(({ by }) => !internal.includes(by))
      .map(({ by, from }) => ({ rule: 'refuse-outside-lan', at, by: [by], from }) as const),
    ...(arrival.forwards ? tunnelRulesOfForwarder(arrival) : tunnelRulesOfHost(arrival)),
    ...familyRules(arrival),
  ];
}

const sourceRoutes = (['lsrr', 'ssrr'] as const).map((option) => ({ rule: 'refuse-source-routes', option }) as const);

/** A host that forwards nothing takes from the tunnel what is for its address, for a group, or for all. */
function tunnelRulesOfHost({ at, range }: Arrival): ArrivalRule[] {
  const isFour = familyOf(at) === 4;
  const broadcasts = isFour ? [everyone, ...(lengthOf(range) < 31 ? [hostPrefix(lastOf(range))] : [])] : [];
  const except = [hostPrefix(at), groups[familyOf(at)], ...broadcasts];
  return [{ rule: 'refuse-other-destinations', except: widest(except) }];
}

/**
 * A host that forwards takes for itself what is for its address and for prefixes that it serves, a default route excepted. What is for
 * other hosts is left to the rules for forwarding, also where a default route is served.
 */
function tunnelRulesOfForwarder({ at, served, vrf, addresses }: Arrival): ArrivalRule[] {
  const isOfFamily = (each: Prefix | Address) => familyOf(each) === familyOf(at);
  const except = widest([hostPrefix(at), ...served.filter((prefix) => isOfFamily(prefix) && !isDefaultRoute(prefix))]);
  const everything = served.some((prefix) => isOfFamily(prefix) && isDefaultRoute(prefix));
  // The kernel's table of local addresses has none of a VRF (fib_table_lookup in net/ipv4/fib_frontend.c).
  const own = vrf === null ? null : addresses.filter(isOfFamily);
  return [
    ...(own?.length === 0
      ? []
      : ([
          { rule: 'refuse-other-addresses', except, own },
          { rule: 'refuse-other-addresses-untracked', except, own },
        ] as const)),
    // A program that redirects by itself serves a private address, as that of a Kubernetes service, to no peer.
    { rule: 'refuse-redirected', except, within: everything ? privateRanges[familyOf(at)] : [] },
  ];
}

/** The network has addresses of one family. */
function familyRules({ at, forwards, hasOtherFamily }: Arrival): ArrivalRule[] {
  const except = groups[familyOf(at) === 4 ? 6 : 4];
  if (!forwards && !hasOtherFamily) return [{ rule: 'refuse-family', except }];
  return [
    { rule: 'refuse-family-begun', except },
    { rule: 'refuse-family-untracked', except },
  ];
}

/** An interface may lead to several served prefixes, alone or with others. */
function mergeEntrances(entrances: readonly Entrance[]): { readonly by: string; readonly from: readonly Prefix[] }[] {
  const links = [...new Set(entrances.flatMap(({ by }) => by))];
  const fromBy = (link: string) => entrances.filter(({ by }) => by.includes(link)).flatMap(({ from }) => from);
  return links.map((by) => ({ by, from: widest(fromBy(by)) }));
}

const prefix = (text: string) => restorePrefix(text);
const everyone = prefix('255.255.255.255/32');
const groups = { 4: prefix('224.0.0.0/4'), 6: prefix('ff00::/8') } as const;

/** RFC 1918, RFC 6598, RFC 4193, and what is local to a host or a link. */
const privateRanges = {
  4: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16'].map(prefix),
  6: ['fc00::/7', 'fe80::/10'].map(prefix),
} as const;

function lastOf(range: Prefix): Address {
  return addressAt(rangeOf(range).last);
}
