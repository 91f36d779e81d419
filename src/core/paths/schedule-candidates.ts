import type { Underlay } from '../host-state/actual.ts';
import { hasPathTo } from '../host-state/underlay.ts';
import { familyOf, hostPrefix } from '../net/cidr.ts';
import { isLiteral, parseEndpoint, type SocketEndpoint, unusableAddress } from '../net/endpoint.ts';
import { isPrivate } from '../routing/public-prefixes.ts';
import { leadsIntoTunnel, mostCandidates, type TunnelPrefixes } from './local-candidates.ts';

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

/**
 * The windows of an attempt, in milliseconds from its start. Both hosts have the same ones, without
 * a word about the candidates of the other: the first packets to observed endpoints must cross. An
 * early packet alone makes some NATs choose another port.
 */
const windows = [
  { kind: 'lan', from: 0, to: 300, longest: 300, shortest: 100, roundTrip: 100 },
  { kind: 'ipv6', from: 300, to: 800, longest: 500, shortest: 250, roundTrip: 400 },
  { kind: 'observed', from: 800, to: Number.POSITIVE_INFINITY, longest: 1_100, shortest: 1_100, roundTrip: 400 },
] as const;

/** Schedules the endpoints of a peer. The rest of a full window comes after all others. */
export function scheduleCandidates(endpoints: readonly string[], limits: EndpointLimits): Schedule {
  const sockets = endpoints
    .slice(0, mostCandidates)
    .map((text) => parseEndpoint(text))
    .filter(isLiteral);
  const byKind = Map.groupBy(sockets, kindOf);
  let end = 0;
  const late: SocketEndpoint[] = [];
  const slots = windows.flatMap(({ kind, from, to, longest, shortest, roundTrip }) => {
    const all = byKind.get(kind) ?? [];
    const inTime = Math.floor((to - from) / shortest);
    late.push(...all.slice(inTime));
    const placed = all.slice(0, inTime);
    const length = Math.max(shortest, Math.min(longest, Math.floor((to - from) / placed.length)));
    end = from + length * placed.length;
    return placed.map((endpoint, index): Candidate => {
      const at = from + index * length;
      return { endpoint, at, until: at + length, roundTrip };
    });
  });
  const { longest, roundTrip } = windows[2];
  const rest = late.map((endpoint, index): Candidate => {
    const at = end + index * longest;
    return { endpoint, at, until: at + longest, roundTrip };
  });
  const isRefused = ({ endpoint }: Candidate) => refuses(endpoint, limits);
  const all = [...slots, ...rest];
  return {
    candidates: all.filter((each) => !isRefused(each)),
    refused: all.filter(isRefused).map(({ endpoint }) => endpoint),
  };
}

/** A control plane must not make this host send into its own networks, or to itself. */
function refuses({ host, port }: SocketEndpoint, { underlay, tunnel }: EndpointLimits): boolean {
  return (
    port === 0 ||
    unusableAddress(host) !== null ||
    leadsIntoTunnel(host, tunnel) ||
    underlay.addresses.includes(host) ||
    underlay.gateways.includes(host) ||
    !hasPathTo(host, underlay)
  );
}

function kindOf({ host }: SocketEndpoint): (typeof windows)[number]['kind'] {
  if (familyOf(host) === 6) return 'ipv6';
  return isPrivate(hostPrefix(host)) ? 'lan' : 'observed';
}
