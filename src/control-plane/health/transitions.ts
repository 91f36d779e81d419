import type { DeviceProfile } from '../../contract/peer.ts';
import type { StoredHealth } from '../store/health.ts';
import type { NewEvent } from './append-events.ts';
import { type AnnouncedRoute, type JudgedNetwork, type Observation, readAnnouncedRoutes } from './observe.ts';

/** What is to be stored of a route, and the event that states it. */
interface RouteTransition {
  readonly after: AnnouncedRoute | undefined;
  readonly event?: NewEvent;
}

/** What is to be stored and stated because verdicts differ from the last events. */
export interface Transitions {
  /** What of peers is to be stored, by their ids, in the order of these. */
  readonly peers: readonly (readonly [number, StoredHealth['announced']])[];
  /** The JSON to store of the routes; null where it is stored already. */
  readonly routes: string | null;
  readonly events: readonly NewEvent[];
  /** What the events count for. */
  readonly subjects: readonly EventSubject[];
  /** Something is not stated because it may not be now. */
  readonly isHeldBack: boolean;
}

/** What of a network an event is about: the id of a peer, a route, or all peers that only other hosts report of. */
export type EventSubject = number | string;
export const reportedPeers = 'reported peers';

/**
 * Compares verdicts with what the last events stated. What is unknown changes nothing, and neither does what is about
 * a subject of which no other event may be stated now.
 */
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
    // A host that calls the control plane is back when it calls again: else one witness could state it of many.
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

/** Peers in the details of one event. */
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
      // A route that was never up is one that is being set up.
      if (before?.state !== 'up') return { after: before };
      const event: NewEvent = { type: 'route.dead', route, details: { why, from: toPeer(before.connector) } };
      return { after: { state, connector: before.connector }, event };
    }
    // Where no host reports a connector, the route stays with the one that it had, if that can still serve.
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
    // Just after a drain no host has reported its new choice.
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
  // What is undefined is left out.
  return { routes: JSON.stringify(Object.fromEntries(entries)), events, isHeldBack };
}
