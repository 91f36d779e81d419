import type { PathState } from '../../../src/contract/health.ts';
import { type MergedReport, readReport } from '../../../src/control-plane/health/merge-report.ts';
import { judgeNetwork, type Observation, type StoredObservation } from '../../../src/control-plane/health/observe.ts';
import type { StoredHealth } from '../../../src/control-plane/store/health.ts';
import type { StoredPeer } from '../../../src/control-plane/store/peers/peers.ts';
import { parsePrefix } from '../../../src/core/net/cidr.ts';

/** The instant of an observation, in milliseconds. */
export const now = Date.parse('2030-01-01T00:00:00.000Z');
export const secondsAgo = (seconds: number) => new Date(now - seconds * 1000).toISOString();
export const lan = '192.168.1.0/24';
export const lab = '192.168.2.0/24';

interface ObservedFields {
  readonly peer?: Partial<StoredPeer>;
  readonly health?: Partial<StoredHealth> | null;
  readonly report?: Partial<MergedReport>;
}

/** A host that made a request a second ago and reports nothing; a connector serves all routes. */
export function observedHost(id: number, { peer, health, report }: ObservedFields = {}): StoredObservation {
  const none = { version: null, platform: null, address: null, report: null, reported_at: null };
  const unknown = {
    announced: null,
    acknowledged_revision: null,
    instances: null,
    lost_at: null,
    follows_relay: 0,
    enforces_rules: 0,
  };
  return {
    peer: {
      ...{ id, network_id: 1, name: `host-${id}`, label: `host-${id}`, peer_type: 'origin', public_key: `key ${id}` },
      ...{ previous_key: null, address: `10.77.0.${id}`, endpoint: null, routes: null, withdrawn: '[]' },
      ...{ identity_key: null, key_proof: null, network_secret_tag: null, profile: null, serving_since: null },
      ...{ awaiting_approval: null },
      ...{ priority: 0, suspended_at: null, expires_at: null, expired: 0, created_at: secondsAgo(3600) },
      ...{ follows_relay: 0, masquerades: 0, tags: null, enforces_rules: 0 },
      ...{ reauth_hours: 0, user_id: null, user_email: null },
      ...peer,
    },
    health:
      health === null
        ? undefined
        : { peer_id: id, network_id: 1, last_seen: secondsAgo(1), ...none, ...unknown, ...health },
    report: { ...readReport(null), ...report },
  };
}

export const observedConnector = (id: number, fields: ObservedFields = {}): StoredObservation =>
  observedHost(id, {
    ...fields,
    peer: { peer_type: 'connector', serving_since: secondsAgo(3600 - id), ...fields.peer },
  });

/** A report of paths to these peers, and of the connector in use of each route; null for none that answers. */
export const reportOf = (
  paths: Readonly<Record<number, PathState>>,
  routes: Readonly<Record<string, number | null>> = {},
): Partial<MergedReport> => ({
  paths: Object.entries(paths).map(([peer, path]) => ({ peer: Number(peer), path })),
  routes: Object.entries(routes).map(([route, connector]) => ({ route, connector })),
});

/** A network with two routes, whose states in the last events are these. */
export function observedNetwork(
  peers: readonly StoredObservation[],
  routes: object = {},
  unlisted: readonly number[] = [],
): Observation {
  return {
    network: {
      ...{ id: 1, name: 'office', description: '', range: parsePrefix('10.77.0.0/24') },
      ...{ routes: [parsePrefix(lan), parsePrefix(lab)], revision: 1, nonce: 'n' },
      ...{ map_max_age_seconds: null, lastingNonce: 'n', relay: null, spread: false, route_dns: [] },
      ...{ self_enroll: null, approval: 'off' },
    },
    isClosed: false,
    revision: { revision: 1, nonce: 'n' },
    routes: JSON.stringify(routes),
    ...{ peers, unlisted, pairs: [] },
  };
}

/** Judges a network as a control plane that has listened for an hour. */
export function judgeObserved(observation: Observation): ReturnType<typeof judgeNetwork> {
  const lastSeen = ({ health }: StoredObservation) => (health?.last_seen ? Date.parse(health.last_seen) : null);
  return judgeNetwork(observation, lastSeen, now, now - 3600_000);
}
