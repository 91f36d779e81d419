import { describe, expect, test } from 'vitest';
import type { HealthEvaluation } from '../../../src/control-plane/health/evaluate.ts';
import { serializeHealth, toOwnHealth } from '../../../src/control-plane/health/health.ts';
import { judgeNetwork, type StoredObservation } from '../../../src/control-plane/health/observe.ts';
import { summarizeNetworks } from '../../../src/control-plane/health/summarize.ts';
import type { Context } from '../../../src/control-plane/service/context.ts';
import { withRows } from '../store/stored-rows.ts';
import { lab, lan, now, observedConnector, observedHost, observedNetwork, secondsAgo } from './observed-network.ts';

const lastSeen = ({ health }: StoredObservation) => (health?.last_seen ? Date.parse(health.last_seen) : null);

function evaluate(
  peers: readonly StoredObservation[],
  keepsPresence = true,
  listeningSince = now - 3600_000,
): HealthEvaluation {
  const observation = observedNetwork(peers);
  return { observation, judged: judgeNetwork(observation, lastSeen, now, listeningSince), keepsPresence };
}
const shown = (evaluation: HealthEvaluation) => JSON.parse(serializeHealth(evaluation, 'other').toString()).data;

/** Facts that all differ. */
const facts = {
  ...{ last_seen: secondsAgo(2), reported_at: secondsAgo(3), version: '1.2.3', platform: 'linux x64' },
  address: '203.0.113.9',
};
const report = {
  ...{ paths: [{ peer: 2, path: 'direct' as const }], routes: [{ route: lan, connector: 2 }], drift: 4 },
  ...{ pin_mismatches: [2], problem: 'nft failed' },
};
const host = observedHost(1, { health: facts, report });

describe('the health of a peer', () => {
  test('has each fact of its requests and each field of its report', () => {
    const [peer] = shown(evaluate([host, observedConnector(2)])).peers;
    expect(peer).toEqual({
      ...{ id: 1, name: 'host-1', state: 'online', reachable_by: 0, witnesses: 0, why: 'it reaches the control plane' },
      ...{ last_seen: secondsAgo(2), reported_at: secondsAgo(3), version: '1.2.3', platform: 'linux x64' },
      ...{ source_address: '203.0.113.9', ...report },
    });
  });

  test('has the mapped LANs that it reports, if it is a connector', () => {
    const map = [{ route: lan, local: '172.16.1.0/24' }];
    const { peers } = shown(
      evaluate([observedHost(1, { report: { map } }), observedConnector(2, { report: { map } })]),
    );
    expect(peers.map((peer: { map?: unknown }) => peer.map)).toEqual([undefined, map]);
  });

  test('has no time of its requests where no presence is kept', () => {
    const evaluation = evaluate([host], false);
    expect(shown(evaluation).peers[0]).toMatchObject({ state: 'online', last_seen: null, reported_at: null, drift: 4 });
    expect(toOwnHealth(evaluation, 1).peers[0]).toMatchObject({ last_seen: null, reported_at: null });
  });

  test('says of a connector alone whether it never answered', () => {
    const never = { health: { last_seen: null } };
    const { peers, routes } = shown(
      evaluate([observedHost(1, never), observedConnector(2), observedConnector(3, never)]),
    );
    expect(peers.map((peer: { never_answered?: boolean }) => peer.never_answered)).toEqual([undefined, false, true]);
    expect(routes).toMatchObject([
      {
        route: lan,
        state: 'up',
        connector: 2,
        standby: [],
        never_answered: [3],
        why: 'no host reports that it uses it',
      },
      { route: lab, state: 'up', connector: 2, standby: [], never_answered: [3] },
    ]);
  });

  test('is its own alone for a peer, without routes, and nothing for one that is not in the map', () => {
    const evaluation = evaluate([host, observedConnector(2)]);
    expect(toOwnHealth(evaluation, 1)).toMatchObject({ peers: [{ id: 1 }], routes: [] });
    expect(toOwnHealth(evaluation, 1).peers).toHaveLength(1);
    expect(toOwnHealth(evaluation, 9)).toEqual({ peers: [], routes: [] });
  });
});

test('a summary counts each state of peers and routes, offline servers but no laptops, and connectors that never answered', () =>
  withRows(async ({ db, organization, network, addNetwork }) => {
    const gone = { last_seen: secondsAgo(1000), announced: 'offline' } as const;
    const never = { last_seen: null };
    const as = (peer_type: 'origin' | 'connector' | 'admin_device') => ({ peer: { peer_type } });
    const peers = [
      observedHost(1),
      observedHost(2, { health: gone }),
      observedHost(3, { health: gone, ...as('connector') }),
      observedHost(4, { health: gone, ...as('admin_device') }),
      observedHost(5, { health: never }),
      observedHost(6, { health: never, ...as('connector') }),
      observedHost(7, { health: never, ...as('admin_device') }),
    ];
    const evaluation = evaluate(peers);
    const [other, deleted] = [await addNetwork(), await addNetwork()];
    const reading: number[] = [];
    const readRecent = async (id: number) => {
      reading.push(id);
      if (id === deleted) return null;
      return id === other ? evaluate([observedConnector(1)]) : evaluation;
    };
    const caller = { kind: 'user', organizationId: organization, networks: null } as unknown as Parameters<
      typeof summarizeNetworks
    >[2];
    const slice = { after: null, skip: 0, limit: 10 };
    const { entries } = await summarizeNetworks({ db } as unknown as Context, { readRecent }, caller, slice);
    expect(reading).toEqual([network, other, deleted]);
    expect(entries).toMatchObject([
      {
        peers: { online: 1, offline: 3, unknown: 3 },
        routes: { up: 0, dead: 0, unknown: 2 },
        ...{ offline_servers: 2, silent_connectors: 1 },
      },
      { peers: { online: 1, offline: 0, unknown: 0 }, routes: { up: 2 }, offline_servers: 0, silent_connectors: 0 },
    ]);
  }));
