import {
  type Address,
  covers,
  familyOf,
  hostPrefix,
  isDefaultRoute,
  maskPrefix,
  type Prefix,
  restorePrefix,
  tryParseAddress,
} from '../net/cidr.ts';
import { formatEndpoint, type SocketEndpoint, tryParseSocket } from '../net/endpoint.ts';
import { specialRanges } from '../net/special-ranges.ts';
import { isPrivate } from '../routing/public-prefixes.ts';
import { mostInTime } from './schedule-candidates.ts';

/** The facts of a network that exclude endpoints from attempts. */
export interface CandidateScope {
  readonly range: Prefix;
  /** A default route excludes nothing: WireGuard's own packets bypass it. */
  readonly routes: readonly Prefix[];
  /** Sockets at which no peer is tried, as {@link formatEndpoint} writes them. */
  readonly taken: ReadonlySet<string>;
}

/**
 * Returns the sockets among these texts at which a peer of the network may be tried, each once.
 * Never a name, a special address, one inside the network or its routes, or a socket that is taken.
 */
export function filterCandidates(
  texts: readonly string[],
  { range, routes, taken }: CandidateScope,
): readonly SocketEndpoint[] {
  const inside = [range, ...routes.filter((route) => !isDefaultRoute(route)), ...specialRanges.map(([each]) => each)];
  const sockets = texts.flatMap((text) => tryParseSocket(text) ?? []);
  const unique = new Map(sockets.map((socket) => [formatEndpoint(socket), socket]));
  return [...unique]
    .filter(([text, { host }]) => !taken.has(text) && !inside.some((prefix) => covers(prefix, host)) && isTried(host))
    .map(([, socket]) => socket);
}

const globalRange = restorePrefix('2000::/3');
/** 6to4 and Teredo: the IPv4 address in it receives the packets. */
const embedded = ['2002::/16', '2001::/32'].map((text) => restorePrefix(text));

function isTried(host: Address): boolean {
  if (familyOf(host) === 4) return true;
  return isPrivate(hostPrefix(host)) || (covers(globalRange, host) && !embedded.some((each) => covers(each, host)));
}

/** An endpoint of a peer in the WireGuard table of a connector. */
export interface Observation {
  readonly endpoint: string;
  /** It was the same at the two latest handshakes. */
  readonly stood: boolean;
}

/** What is stated about the endpoints of one peer. */
export interface StatedEndpoints {
  /** The source address of its latest statement. */
  readonly source: string;
  /** Its own addresses, by its own statement. */
  readonly own: readonly string[];
  readonly observed: readonly Observation[];
  /** Sockets of other peers. They exclude what this one states, except at its source address. */
  readonly claimed: ReadonlySet<string>;
}

/** `symmetric`: a NAT that uses another port for each destination. `unknown`: seen by only one. */
export type NatKind = 'steady' | 'symmetric' | 'unknown';

export interface PairCandidates {
  /** The endpoints of each of both, in the order in which the other one tries them. */
  readonly endpoints: readonly [readonly string[], readonly string[]];
  readonly nats: readonly [NatKind, NatKind];
  /** Of each of both, as connectors observe it. */
  readonly observed: readonly [readonly string[], readonly string[]];
  /** True if their NATs leave only paths in the same LAN and over IPv6. */
  readonly isBlocked: boolean;
}

/**
 * Chooses the endpoints at which two peers try each other: in the same LAN, over IPv6, and as
 * connectors observe them. Private addresses only if both seem to be at one site. An observation
 * counts if it stood, or if requests of the peer come from its address.
 */
export function choosePairCandidates(
  given: readonly [StatedEndpoints, StatedEndpoints],
  scope: CandidateScope,
  most: number,
): PairCandidates {
  const [one, other] = [readStatement(given[0], scope), readStatement(given[1], scope)];
  const nats = [one.nat, other.nat] as const;
  const isBlocked = nats.includes('symmetric') && !nats.includes('steady');
  const isOneSite = one.site !== null && one.site === other.site;
  // A host that hides its own addresses would reveal one if it sent to those of the other.
  const bothLan = isOneSite && one.lan.length > 0 && other.lan.length > 0;
  const bothSix = one.six.length > 0 && other.six.length > 0;
  const choose = (all: Statement) => {
    const [lan, six, mapped] = [bothLan ? all.lan : [], bothSix ? all.six : [], isBlocked ? [] : all.mapped];
    // Bridges of containers, say, must not displace the endpoints of another kind.
    const soon = [...lan.slice(0, mostInTime.lan), ...six.slice(0, mostInTime.ipv6), ...mapped];
    const rest = [...lan.slice(mostInTime.lan), ...six.slice(mostInTime.ipv6)];
    return [...soon, ...rest].slice(0, most).map((socket) => formatEndpoint(socket));
  };
  const observe = ({ mapped }: Statement) => mapped.slice(0, most).map(formatEndpoint);
  return {
    endpoints: [choose(one), choose(other)],
    nats,
    observed: [observe(one), observe(other)],
    isBlocked,
  };
}

interface Statement {
  readonly lan: readonly SocketEndpoint[];
  readonly six: readonly SocketEndpoint[];
  /** Public IPv4 sockets, as connectors observe them. */
  readonly mapped: readonly SocketEndpoint[];
  readonly nat: NatKind;
  /** The same for hosts that seem to be at one site; null if it is unknown. */
  readonly site: string | null;
}

function readStatement({ source, own, observed, claimed }: StatedEndpoints, scope: CandidateScope): Statement {
  // The source of requests is of the host itself, whatever another peer claims.
  const stated = filterCandidates(own, scope).filter(
    (socket) => socket.host === source || !claimed.has(formatEndpoint(socket)),
  );
  const believed = observed
    .filter(({ endpoint, stood }) => stood || tryParseSocket(endpoint)?.host === source)
    .map(({ endpoint }) => endpoint);
  const seen = filterCandidates(believed, scope);
  const all = [...new Map([...stated, ...seen].map((socket) => [formatEndpoint(socket), socket])).values()];
  const isSix = ({ host }: SocketEndpoint) => familyOf(host) === 6;
  const isLan = ({ host }: SocketEndpoint) => isPrivate(hostPrefix(host));
  // A host does not state public IPv4 addresses: a member could name those of others.
  const mapped = seen.filter((socket) => !isSix(socket) && !isLan(socket));
  const isMapped = (text: string) => mapped.some((socket) => formatEndpoint(socket) === text);
  return {
    lan: all.filter(isLan),
    six: all.filter((socket) => isSix(socket) && !isLan(socket)),
    mapped,
    nat: guessNat(mapped, believed.filter(isMapped).length),
    site: siteOf(source, stated),
  };
}

/**
 * Hosts behind one public IPv4 address, or in one IPv6 subnet, seem to be at one site. A requester
 * cannot forge its source; a packet to a connector may have a forged one.
 */
function siteOf(source: string, stated: readonly SocketEndpoint[]): string | null {
  const address = tryParseAddress(source);
  if (address === null || specialRanges.some(([range]) => covers(range, address))) return null;
  // A proxy or a NAT is the source of all hosts behind it. Without one, the host has the address.
  if (isPrivate(hostPrefix(address))) return stated.some(({ host }) => host === address) ? 'private' : null;
  if (familyOf(address) === 4) return address;
  return covers(globalRange, address) ? maskPrefix(`${address}/64`) : null;
}

function guessNat(mapped: readonly SocketEndpoint[], observers: number): NatKind {
  if (observers < 2) return 'unknown';
  return new Set(mapped.map(({ port }) => port)).size > 1 ? 'symmetric' : 'steady';
}
