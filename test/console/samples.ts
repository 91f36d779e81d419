import type { Event, EventType } from '../../src/contract/event.ts';
import type { Health, PathHealth, PeerHealth, RouteHealth } from '../../src/contract/health.ts';
import type { Network } from '../../src/contract/network.ts';
import type { Peer } from '../../src/contract/peer.ts';

export const at = '2030-01-01T00:00:00.000Z';
export const now = Date.parse(at);
/** An instant so many seconds after {@link at}. */
export const later = (seconds: number) => new Date(now + seconds * 1000).toISOString();
export const lan = '192.168.50.0/24';

export function peer(id: number, fields: Partial<Peer> = {}): Peer {
  const own = {
    id,
    name: `peer-${id}`,
    peer_type: 'origin',
    address: `10.77.0.${id}`,
    public_key: `key-${id}`,
  } as const;
  return { ...own, endpoint: null, created_at: at, ...fields };
}

export const connector = (id: number, fields: Partial<Peer> = {}) => peer(id, { peer_type: 'connector', ...fields });

export function network(peers: Peer[], fields: Partial<Network> = {}): Network {
  const summary = { id: 1, name: 'office', description: '', private_cidr: '10.77.0.0/24', routes: [] };
  return { ...summary, vpn_type: 'wireguard', revision: 1, etag: '"1"', peers, ...fields };
}

/** The report of a host, and what is made of it. */
export function healthOf(id: number, fields: Partial<PeerHealth> = {}): PeerHealth {
  const verdict = { state: 'online', reachable_by: 1, witnesses: 1, why: `why ${id}` } as const;
  const seen = { last_seen: at, version: '0.1.0', platform: null, source_address: null, reported_at: at };
  const rest = { paths: [], routes: [], drift: null, pin_mismatches: [], problem: null };
  return { id, name: `peer-${id}`, ...verdict, ...seen, ...rest, ...fields };
}

export const path = (to: number, state: PathHealth['path'], fields: Partial<PathHealth> = {}): PathHealth => {
  return { peer: to, path: state, ...fields };
};

export const routeOf = (route: string, fields: Partial<RouteHealth> = {}): RouteHealth => {
  return { route, state: 'up', connector: null, standby: [], why: 'a reason', ...fields };
};

export const health = (peers: PeerHealth[], routes: RouteHealth[] = []): Health => ({ peers, routes });

export function event(id: number, type: EventType, fields: Partial<Event> = {}): Event {
  return { id, at, type, network: 1, peer: null, route: null, details: {}, ...fields };
}
