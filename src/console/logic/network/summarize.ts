import type { Event, EventType } from '../../../contract/event.ts';
import type { Health, HealthSummary, PeerState } from '../../../contract/health.ts';
import type { Network } from '../../../contract/network.ts';
import type { Peer } from '../../../contract/peer.ts';
import { findConnectors } from '../peers/connectors.ts';

export type Trouble =
  | { readonly kind: 'dead-route' | 'unknown-route'; readonly route: string; readonly why: string }
  | { readonly kind: 'offline' | 'failing'; readonly peer: Peer; readonly why: string }
  | { readonly kind: 'silent-connector'; readonly peer: Peer; readonly routes: readonly string[] }
  | { readonly kind: 'no-standby'; readonly route: string; readonly connector: Peer };

export interface Summary {
  readonly counts: Readonly<Record<PeerState, number>>;
  readonly routes: Readonly<Record<'up' | 'dead' | 'unknown', number>>;
  /** Most severe first. */
  readonly troubles: readonly Trouble[];
}

/** Summarizes the verdicts on a network. An offline laptop is counted, but is no trouble. */
export function summarizeNetwork({ peers, routes }: Pick<Network, 'peers' | 'routes'>, health: Health): Summary {
  const byId = new Map(health.peers.map((each) => [each.id, each]));
  const stateOf = ({ id }: Peer) => byId.get(id)?.state ?? 'unknown';
  const counts = { online: 0, offline: 0, unknown: 0 };
  for (const peer of peers) counts[stateOf(peer)] += 1;
  const verdicts = health.routes.filter(({ route }) => routes.includes(route));
  const dead = verdicts.filter(({ state }) => state === 'dead');
  const withProblem = (peer: Peer) => {
    const problem = byId.get(peer.id)?.problem ?? null;
    return problem === null || stateOf(peer) === 'offline' ? [] : [{ kind: 'failing', peer, why: problem } as const];
  };
  const silent = peers.filter(({ id }) => byId.get(id)?.never_answered === true);
  const isLaptop = ({ peer_type }: Peer) => peer_type === 'admin_device';
  const offline = peers.filter((peer) => stateOf(peer) === 'offline' && !isLaptop(peer));
  return {
    counts,
    routes: {
      up: verdicts.filter(({ state }) => state === 'up').length,
      dead: dead.length,
      unknown: routes.length - verdicts.filter(({ state }) => state !== 'unknown').length,
    },
    troubles: [
      ...dead.map(({ route, why }) => ({ kind: 'dead-route', route, why }) as const),
      ...offline.map((peer) => ({ kind: 'offline', peer, why: byId.get(peer.id)?.why ?? '' }) as const),
      ...peers.flatMap(withProblem),
      ...silent.map((peer) => {
        const served = routes.filter((route) => findConnectors([peer], route).length > 0);
        return { kind: 'silent-connector', peer, routes: served } as const;
      }),
      ...verdicts
        .filter(({ route, state }) => state === 'unknown' && findConnectors(silent, route).length === 0)
        .map(({ route, why }) => ({ kind: 'unknown-route', route, why }) as const),
      ...verdicts.flatMap(({ route, state, connector, standby }): Trouble[] => {
        const active = peers.find(({ id }) => id === connector);
        const hasOthers = findConnectors(peers, route).length > 1;
        if (state !== 'up' || active === undefined || standby.length > 0 || !hasOthers) return [];
        return [{ kind: 'no-standby', route, connector: active }];
      }),
    ],
  };
}

/** True if something in a network is down, by the summary of the control plane. */
export function hasTrouble({ routes, offline_servers, silent_connectors }: HealthSummary): boolean {
  return routes.dead + routes.unknown > 0 || offline_servers > 0 || silent_connectors > 0;
}

const telling: readonly EventType[] = [
  ...([
    'peer.offline',
    'peer.online',
    'peer.cloned',
    'peer.removed',
    'peer.enrolled',
    'peer.awaiting_approval',
  ] as const),
  ...(['route.failed_over', 'route.dead', 'route.restored', 'relay.changed'] as const),
  ...(['rules.changed', 'rules.restored'] as const),
  ...(['pin.mismatch', 'reconcile.failing', 'reconcile.recovered', 'key.rotated'] as const),
];

/** The last events about hosts or routes, newest first. */
export function findLastEvents(events: readonly Event[], most: number): readonly Event[] {
  return events
    .filter(({ type }) => telling.includes(type))
    .slice(-most)
    .toReversed();
}
