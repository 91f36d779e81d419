import type { StoredHealth } from '../store/health.ts';
import type { NewEvent } from './append-events.ts';
import type { JudgedNetwork, Observation } from './observe.ts';

/** What the last events stated of each route that was up once. The connector is the last one that served it. */
type AnnouncedRoutes = Readonly<Record<string, AnnouncedRoute>>;

interface AnnouncedRoute {
  readonly state: 'up' | 'dead';
  readonly connector: number | null;
}

/** What is to be stored and stated because verdicts differ from the last events. */
export interface Transitions {
  /** What of peers is to be stored, by their ids, in the order of these. */
  readonly peers: readonly (readonly [number, StoredHealth['announced']])[];
  /** The JSON to store of the routes; null where it is stored already. */
  readonly routes: string | null;
  readonly events: readonly NewEvent[];
}

/** Compares verdicts with what the last events stated. What is unknown changes nothing. */
export function findTransitions(observation: Observation, judged: JudgedNetwork): Transitions {
  const peers = observation.peers.flatMap(({ peer, health }) => {
    const state = judged.peers.get(peer.id)?.state ?? 'unknown';
    return state === 'unknown' || state === (health?.announced ?? null) ? [] : [{ peer, state }];
  });
  const peerEvents = peers.map(({ peer: { id, name }, state }): NewEvent => {
    const why = judged.peers.get(id)?.why;
    return { type: state === 'online' ? 'peer.online' : 'peer.offline', peer: { id, name }, details: { why } };
  });
  const left = observation.unlisted.map((id) => [id, null] as const);
  const { routes, events } = compareRoutes(observation, judged);
  return {
    peers: [...peers.map(({ peer, state }) => [peer.id, state] as const), ...left].toSorted(([a], [b]) => a - b),
    routes: routes === observation.routes ? null : routes,
    events: [...peerEvents, ...events],
  };
}

function compareRoutes({ network, peers, routes }: Observation, judged: JudgedNetwork) {
  const names = new Map(peers.map(({ peer: { id, name } }) => [id, name]));
  const toPeer = (id: number | null) => (id === null ? null : { id, name: names.get(id) ?? null });
  const announced: AnnouncedRoutes = JSON.parse(routes);
  const events: NewEvent[] = [];
  const entries = network.routes.flatMap((route): (readonly [string, AnnouncedRoute])[] => {
    const before = Object.hasOwn(announced, route) ? announced[route] : undefined;
    const verdict = judged.routes.get(route);
    if (!verdict || verdict.state === 'unknown') return before ? [[route, before]] : [];
    const { state, connector, standby, choices, why } = verdict;
    if (state === 'dead') {
      // A route that was never up is one that is being set up.
      if (!before) return [];
      if (before.state === 'up') {
        events.push({ type: 'route.dead', route, details: { why, from: toPeer(before.connector) } });
      }
      return [[route, { state, connector: before.connector }]];
    }
    if (before?.state === 'dead') events.push({ type: 'route.restored', route, details: { to: toPeer(connector) } });
    // Where no host reports a connector, the route stays with the one that it had, if that can still serve.
    const last = before?.connector ?? null;
    const stays = last !== null && !choices.includes(connector) && standby.includes(last);
    const used = stays ? last : (connector ?? last);
    if (before?.state === 'up' && last !== null && used !== last) {
      const named = used === null ? undefined : names.get(used);
      const peer = used !== null && named !== undefined ? { peer: { id: used, name: named } } : {};
      events.push({
        type: 'route.failed_over',
        route,
        ...peer,
        details: { from: toPeer(last), to: toPeer(used), why },
      });
    }
    return [[route, { state, connector: used }]];
  });
  return { routes: JSON.stringify(Object.fromEntries(entries)), events };
}
