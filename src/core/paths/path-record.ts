import { familyOf, hostPrefix } from '../net/cidr.ts';
import { formatEndpoint, type SocketEndpoint, tryParseSocket } from '../net/endpoint.ts';
import { isPrivate } from '../routing/public-prefixes.ts';
import type { Attempt, TriedCandidate, TryMessage } from './attempt-state.ts';
import type { PathEnd } from './direct-paths.ts';
import { lookOfNat, type NatLook } from './nat-look.ts';

/** What the daemon records about the path to one peer, for `cpn status` and `cpn explain`. */
export interface PathRecord {
  /** The latest switch; null before the first. */
  readonly switched: PathSwitch | null;
  /** The latest attempt at a direct path; null before the first. */
  readonly attempt: AttemptRecord | null;
}

/** Instants are in ISO 8601. */
export interface PathSwitch {
  readonly to: 'direct' | 'relayed';
  readonly at: string;
  /** Why this host returned to the relay; null if the peer did, and for a direct path. */
  readonly why: PathEnd | null;
}

/**
 * Nothing was tried after `blocked`, as the NATs of both hosts leave no path, after `no-endpoints`,
 * as no connector observed both hosts, and after `declined`, as the peer takes no direct paths.
 */
export const attemptOutcomes = ['proven', 'failed', 'blocked', 'no-endpoints', 'declined'] as const;
export type AttemptOutcome = (typeof attemptOutcomes)[number];

export interface AttemptRecord {
  readonly at: string;
  readonly outcome: AttemptOutcome;
  readonly tried: readonly TriedRecord[];
  readonly nats: { readonly own: NatLook; readonly peer: NatLook };
  /** This host's endpoints, as connectors observe them. */
  readonly observed: readonly string[];
}

/** `reached`: the peer answered at this endpoint. */
export interface TriedRecord {
  readonly endpoint: string;
  readonly outcome: TriedCandidate['outcome'] | 'reached';
}

/** The most peers with a record: the most pairs of a host. */
const mostRecords = 32;

export type PathRecords = Readonly<Record<string, PathRecord>>;

export function recordOf(records: PathRecords, peer: number | string): PathRecord | null {
  return Object.hasOwn(records, `${peer}`) ? (records[`${peer}`] ?? null) : null;
}

/** Adds facts about a peer. Leaves out the records that are oldest, beyond the most. */
export function addRecord(records: PathRecords, peer: number, facts: Partial<PathRecord>): PathRecords {
  const none: PathRecord = { switched: null, attempt: null };
  const next = { ...records, [`${peer}`]: { ...none, ...recordOf(records, peer), ...facts } };
  const latest = Object.entries(next).toSorted(([, one], [, other]) => (instantOf(one) < instantOf(other) ? 1 : -1));
  return Object.fromEntries(latest.slice(0, mostRecords));
}

function instantOf({ switched, attempt }: PathRecord): string {
  return [switched?.at ?? '', attempt?.at ?? ''].toSorted().at(-1) ?? '';
}

/** The candidates of an attempt that reached the peer at `reached`, which may be none of them. */
export function listTried({ schedule, at }: Attempt, reached: SocketEndpoint | null): TriedRecord[] {
  const end = reached && formatEndpoint(reached);
  const others = schedule.candidates
    .slice(0, at + 1)
    .map(({ endpoint }) => formatEndpoint(endpoint))
    .filter((endpoint) => endpoint !== end);
  return [
    ...others.map((endpoint): TriedRecord => ({ endpoint, outcome: 'no-answer' })),
    ...(end === null ? [] : [{ endpoint: end, outcome: 'reached' } as const]),
  ];
}

/** What this host has for the NATs of both in addition to the message. */
export interface AttemptFacts {
  readonly own: readonly SocketEndpoint[];
  readonly tried: readonly TriedRecord[];
  readonly outcome: AttemptOutcome;
  readonly at: string;
}

/** A peer that answers at its address, but at another port, uses that port for this host alone. */
export function recordAttempt(message: TryMessage, { own, tried, outcome, at }: AttemptFacts): AttemptRecord {
  const { endpoints, observed = [], nats } = message;
  const isMapped = (text: string) => {
    const host = tryParseSocket(text)?.host;
    return host !== undefined && familyOf(host) === 4 && !isPrivate(hostPrefix(host));
  };
  const reached = tried.filter((each) => each.outcome === 'reached').map(({ endpoint }) => endpoint);
  const peer = {
    own: endpoints.filter((text) => !isMapped(text)).flatMap((text) => tryParseSocket(text) ?? []),
    observed: [...new Set([...endpoints, ...reached].filter(isMapped))],
    kind: nats?.peer ?? 'unknown',
  };
  const looks = { own: lookOfNat({ own, observed, kind: nats?.own ?? 'unknown' }), peer: lookOfNat(peer) };
  return { at, outcome, tried, nats: looks, observed };
}
