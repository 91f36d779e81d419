import type { Underlay } from '../host-state/actual.ts';
import { hasPathTo } from '../host-state/underlay.ts';
import { familyOf, hostPrefix } from '../net/cidr.ts';
import { isLiteral, parseEndpoint, type SocketEndpoint, unusableAddress } from '../net/endpoint.ts';
import { isPrivate } from '../routing/public-prefixes.ts';
import { leadsInside, leadsIntoTunnel, mostCandidates, type TunnelPrefixes } from './local-candidates.ts';

/** A candidate and when it is tried. */
export interface Candidate {
  readonly endpoint: SocketEndpoint;
  /** Milliseconds from the start of the attempt. */
  readonly at: number;
  readonly until: number;
  /** Milliseconds within which a handshake follows the first packet of the peer. */
  readonly roundTrip: number;
}

export interface Schedule {
  readonly candidates: readonly Candidate[];
  /** Endpoints that this host does not try. */
  readonly refused: readonly SocketEndpoint[];
}

/** The inputs that decide which endpoints this host refuses. */
export interface EndpointLimits {
  readonly underlay: Underlay;
  readonly tunnel: TunnelPrefixes;
}

export type EndpointKind = 'lan' | 'ipv6' | 'observed';

/**
 * The windows of an attempt, one after the other, in milliseconds. Both hosts have the same ones,
 * whatever this host refuses: the first packets to observed endpoints must cross. An early packet
 * alone makes some NATs choose another port.
 */
const windows = [
  { kind: 'lan', length: 300, roundTrip: 100 },
  { kind: 'ipv6', length: 500, roundTrip: 400 },
] as const;
/** Endpoints that fit into the window of their kind. */
export const mostInTime = { lan: 3, ipv6: 2 } as const;
const observed = { kind: 'observed', length: 1_100, roundTrip: 400 } as const;
const allKinds: readonly EndpointKind[] = ['lan', 'ipv6', 'observed'];

interface Endpoints {
  readonly endpoints: readonly string[];
  /** Those of both sides; all by default. */
  readonly kinds?: readonly EndpointKind[] | undefined;
}

/** The kinds of these endpoints, in the order in which hosts try them. */
export function listKinds(endpoints: readonly string[]): EndpointKind[] {
  const kinds = new Set(
    endpoints
      .map((text) => parseEndpoint(text))
      .filter(isLiteral)
      .map(kindOf),
  );
  return allKinds.filter((kind) => kinds.has(kind));
}

/** Schedules the endpoints of a peer. The rest of a full window comes after all others. */
export function scheduleCandidates({ endpoints, kinds = allKinds }: Endpoints, limits: EndpointLimits): Schedule {
  const sockets = endpoints
    .slice(0, mostCandidates)
    .map((text) => parseEndpoint(text))
    .filter(isLiteral);
  const byKind = Map.groupBy(sockets, kindOf);
  const slots: Candidate[] = [];
  const late: SocketEndpoint[] = [];
  let from = 0;
  for (const { kind, length, roundTrip } of windows) {
    if (!kinds.includes(kind)) {
      late.push(...(byKind.get(kind) ?? []));
      continue;
    }
    const most = mostInTime[kind];
    const placed = (byKind.get(kind) ?? []).slice(0, most);
    late.push(...(byKind.get(kind) ?? []).slice(most));
    const each = Math.floor(length / placed.length);
    slots.push(...placed.map((endpoint, index) => slotOf(endpoint, from + index * each, each, roundTrip)));
    from += length;
  }
  const { length, roundTrip } = observed;
  const rest = [...(byKind.get(observed.kind) ?? []), ...late].map((endpoint, index) =>
    slotOf(endpoint, from + index * length, length, roundTrip),
  );
  const isRefused = ({ endpoint }: Candidate) => refuses(endpoint, limits);
  const all = [...slots, ...rest];
  return {
    candidates: all.filter((each) => !isRefused(each)),
    refused: all.filter(isRefused).map(({ endpoint }) => endpoint),
  };
}

function slotOf(endpoint: SocketEndpoint, at: number, length: number, roundTrip: number): Candidate {
  return { endpoint, at, until: at + length, roundTrip };
}

/** A control plane must not make this host send into its own networks, or to itself. */
function refuses({ host, port }: SocketEndpoint, { underlay, tunnel }: EndpointLimits): boolean {
  return (
    port === 0 ||
    unusableAddress(host) !== null ||
    leadsIntoTunnel(host, tunnel) ||
    underlay.addresses.includes(host) ||
    underlay.gateways.includes(host) ||
    leadsInside(host, underlay) ||
    !hasPathTo(host, underlay)
  );
}

function kindOf({ host }: SocketEndpoint): EndpointKind {
  if (familyOf(host) === 6) return 'ipv6';
  return isPrivate(hostPrefix(host)) ? 'lan' : 'observed';
}
