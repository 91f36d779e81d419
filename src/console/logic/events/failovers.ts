import type { Event } from '../../../contract/event.ts';
import type { Peer } from '../../../contract/peer.ts';
import { nameOf } from '../../../core/events/describe-event.ts';

/** `start` and `end` are fractions of the time line, from 0 to 1. */
export interface Segment {
  readonly start: number;
  readonly end: number;
  /** Null while the route was dead. */
  readonly connector: string | null;
}

export interface Lane {
  readonly route: string;
  readonly segments: readonly Segment[];
}

export interface TimeLine {
  /** Milliseconds. */
  readonly start: number;
  readonly end: number;
  readonly lanes: readonly Lane[];
}

const types: readonly string[] = ['route.failed_over', 'route.dead', 'route.restored'];
const leastMs = 600_000;
/** The shortest length, also for a younger network. */
const shortestMs = 60_000;
/** Keeps a segment that begins now visible. */
const latest = 0.94;

export function findFailovers(events: readonly Event[]): readonly Event[] {
  return events.filter(({ type }) => types.includes(type));
}

/** The earliest time, in milliseconds, at which the network demonstrably existed. */
export function findBeginning(peers: readonly Peer[], events: readonly Event[]): number {
  const times = [...peers.map(({ created_at }) => created_at), ...events.map(({ at }) => at)].map(Date.parse);
  return times.reduce((first, time) => Math.min(first, time), Number.POSITIVE_INFINITY);
}

/** Lays out which connector served each route since `since`; null without any change. */
export function layOutFailovers(events: readonly Event[], now: number, since = 0): TimeLine | null {
  const failovers = findFailovers(events);
  const [oldest] = failovers;
  if (oldest === undefined) return null;
  const end = Math.max(now, ...failovers.map(({ at }) => Date.parse(at)));
  const wanted = Math.max(leastMs, (end - Date.parse(oldest.at)) * 1.1);
  const start = Math.max(end - wanted, Math.min(since, end - shortestMs));
  const length = end - start;
  const routes = [...new Set(failovers.flatMap(({ route }) => route ?? []))];
  const lanes = routes.map((route) => ({
    route,
    segments: cut(
      failovers.filter((event) => event.route === route),
      (at) => Math.min(latest, (Date.parse(at) - start) / length),
    ),
  }));
  return { start, end, lanes };
}

function cut(events: readonly Event[], placeOf: (at: string) => number): readonly Segment[] {
  const ends = [...events.slice(1).map(({ at }) => placeOf(at)), 1];
  const [first] = events;
  const before = first === undefined || first.type === 'route.restored' ? null : nameOf(first.details.from);
  return [
    ...(first === undefined ? [] : [{ start: 0, end: placeOf(first.at), connector: before }]),
    ...events.map(({ type, at, details }, index) => ({
      ...{ start: placeOf(at), end: ends[index] ?? 1 },
      connector: type === 'route.dead' ? null : nameOf(details.to),
    })),
  ];
}
