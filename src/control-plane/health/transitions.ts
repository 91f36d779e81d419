import type { DeviceProfile } from '../../contract/peer.ts';
import type { NewEvent } from '../service/append-events.ts';
import { createPeerChangeLimit } from '../service/peer-change-limit.ts';
import type { StoredHealth } from '../store/health.ts';
import { type AnnouncedRoute, type JudgedNetwork, type Observation, readAnnouncedRoutes } from './observe.ts';

interface RouteTransition {
  readonly after: AnnouncedRoute | undefined;
  readonly event?: NewEvent;
}

/** The changes to store and the events to emit, because verdicts differ from the last events. */
export interface Transitions {
  /** The states of peers to store, ordered by peer id. */
  readonly peers: readonly (readonly [number, StoredHealth['announced']])[];
  /** The JSON of the routes to store; null if unchanged. */
  readonly routes: string | null;
  readonly events: readonly NewEvent[];
  /** The subjects whose limits the events count against. */
  readonly subjects: readonly EventSubject[];
  /** True if a change is held back by the limit of its subject. */
  readonly isHeldBack: boolean;
}

/** An event's subject: a peer id, a route, or all peers that only other hosts report. */
export type EventSubject = number | string;
export const reportedPeers = 'reported peers';

/** Compares verdicts with the last events. Unknown states and reached limits change nothing. */
export function findTransitions(
  observation: Observation,
  judged: JudgedNetwork,
  mayState: (subject: EventSubject, count?: number) => boolean,
): Transitions {
  const changed = observation.peers.flatMap(({ peer, health }) => {
    const { state = 'unknown', isHeard = false } = judged.peers.get(peer.id) ?? {};
    const announced = health?.announced ?? null;
    if (state === 'unknown' || state === announced) return [];
    const isReported = !isHeard && health?.last_seen == null;
    // A host that made requests before returns only with a request. Otherwise a single witness
    // could state the return of many hosts.
    return announced === 'offline' && !isHeard && !isReported ? [] : [{ peer, state, isReported }];
  });
  const reported: EventSubject[] = [];
  const peers = changed.filter(({ peer, isReported }) => {
    const may = mayState(peer.id) && (!isReported || mayState(reportedPeers, reported.length + 1));
    if (may && isReported) reported.push(reportedPeers);
    return may;
  });
  const peerEvents = peers.map(({ peer: { id, name }, state }): NewEvent => {
    const why = judged.peers.get(id)?.why;
    const alone = findDialling(observation, id);
    return {
      type: state === 'online' ? 'peer.online' : 'peer.offline',
      peer: { id, name },
      details: { why, ...(alone.length > 0 && { only_connector_of: alone }) },
    };
  });
  const left = observation.unlisted.map((id) => [id, null] as const);
  const { routes, events, isHeldBack } = compareRoutes(observation, judged, mayState);
  return {
    peers: [...peers.map(({ peer, state }) => [peer.id, state] as const), ...left].toSorted(([a], [b]) => a - b),
    routes: routes === observation.routes ? null : routes,
    events: [...peerEvents, ...events],
    subjects: [...peers.map(({ peer }) => peer.id), ...reported, ...events.flatMap(({ route }) => route ?? [])],
    isHeldBack: isHeldBack || peers.length < changed.length,
  };
}

/** The peers whose profile names this connector, and no other. */
function findDialling({ peers }: Observation, connector: number): { readonly id: number; readonly name: string }[] {
  const dialling = peers.flatMap(({ peer: { id, name, profile } }) =>
    profile !== null && (JSON.parse(profile) as DeviceProfile).connector === connector ? [{ id, name }] : [],
  );
  return dialling.slice(0, mostDialling);
}

/** The maximum number of peers in the details of an event. */
const mostDialling = 50;

function compareRoutes(observation: Observation, judged: JudgedNetwork, mayState: (subject: EventSubject) => boolean) {
  const { network, peers } = observation;
  const names = new Map(peers.map(({ peer: { id, name } }) => [id, name]));
  const toPeer = (id: number | null) => (id === null ? null : { id, name: names.get(id) ?? null });
  const announced = readAnnouncedRoutes(observation);
  const compare = (route: string, before: AnnouncedRoute | undefined): RouteTransition => {
    const verdict = judged.routes.get(route);
    if (!verdict || verdict.state === 'unknown') return { after: before };
    const { state, connector, standby, choices, why } = verdict;
    if (state === 'dead') {
      // A route that was never up is still being set up.
      if (before?.state !== 'up') return { after: before };
      const event: NewEvent = { type: 'route.dead', route, details: { why, from: toPeer(before.connector) } };
      return { after: { state, connector: before.connector }, event };
    }
    // If no host reports a connector, the route stays with its last one, if that can still serve.
    const last = before?.connector ?? null;
    const stays = last !== null && !choices.includes(connector) && standby.includes(last);
    const used = stays ? last : (connector ?? last);
    const after: AnnouncedRoute = { state, connector: used };
    if (before?.state === 'dead') {
      return { after, event: { type: 'route.restored', route, details: { to: toPeer(connector) } } };
    }
    if (before === undefined || last === null || used === last) return { after };
    const named = used === null ? undefined : names.get(used);
    const peer = used !== null && named !== undefined ? { peer: { id: used, name: named } } : {};
    const from = toPeer(last);
    // Just after a drain, no host has reported its new choice.
    const reason = choices.includes(used) ? why : `${from?.name ?? 'the last connector'} no longer serves it`;
    const details = { from, to: toPeer(used), why: reason };
    return { after, event: { type: 'route.failed_over', route, ...peer, details } };
  };
  const events: NewEvent[] = [];
  let isHeldBack = false;
  const entries = network.routes.map((route) => {
    const before = announced.get(route);
    const { after, event } = compare(route, before);
    if (event && !mayState(route)) {
      isHeldBack = true;
      return [route, before] as const;
    }
    if (event) events.push(event);
    return [route, after] as const;
  });
  // JSON.stringify omits undefined values.
  return { routes: JSON.stringify(Object.fromEntries(entries)), events, isHeldBack };
}

/**
 * `most` events at once, and one more per interval: about one peer or route, and about all peers
 * that only other hosts report, which any host can make seem to fail and return.
 */
const stateEvents = { most: 10, refillMs: 600_000 } as const;
const reportedEvents = { most: 60, refillMs: 60_000 } as const;

export interface EventLimits {
  readonly hasRoom: (network: number, subject: EventSubject, count?: number) => boolean;
  readonly take: (network: number, subjects: readonly EventSubject[]) => void;
}

export function createEventLimits(now: () => number): EventLimits {
  const ofState = createPeerChangeLimit<string>(stateEvents.most, now, stateEvents.refillMs);
  const ofReported = createPeerChangeLimit<string>(reportedEvents.most, now, reportedEvents.refillMs);
  const limitOf = (subject: EventSubject) => (subject === reportedPeers ? ofReported : ofState);
  return {
    hasRoom: (network, subject, count) => limitOf(subject).hasRoom(`${network} ${subject}`, count),
    take: (network, subjects) => {
      for (const subject of subjects) limitOf(subject).take(`${network} ${subject}`, true);
    },
  };
}
