import {
  judgePeers,
  judgeRoute,
  type ObservedConnector,
  type PeerVerdict,
  type RouteVerdict,
  type RouteVote,
} from '../../core/health/verdict/verdict.ts';
import { compareConnectors } from '../../core/map/connector-rank.ts';
import { readService } from '../push/to-contract.ts';
import type { Revision } from '../store/changes.ts';
import { listPeerHealth, readNetworkHealth, type StoredHealth } from '../store/health.ts';
import { readNetwork, type StoredNetwork } from '../store/networks.ts';
import { listPeers } from '../store/peers/peer-lists.ts';
import { listPairs, type StoredPair } from '../store/peers/peer-pairs.ts';
import type { StoredPeer } from '../store/peers/peers.ts';
import { readMode } from '../store/rules.ts';
import type { Db } from '../store/tables.ts';
import { type MergedReport, readReport } from './merge-report.ts';

export interface StoredObservation {
  readonly peer: StoredPeer;
  readonly health: StoredHealth | undefined;
  readonly report: MergedReport;
}

export interface Observation {
  readonly network: StoredNetwork;
  readonly isClosed: boolean;
  readonly revision: Revision;
  /** The state of the routes in the last events. */
  readonly routes: string;
  readonly peers: readonly StoredObservation[];
  /** Suspended and expired peers with a state in the last event. */
  readonly unlisted: readonly number[];
  /** The pairs that have a direct path, or tried for one. */
  readonly pairs: readonly StoredPair[];
}

/** Reads the health of a network in a transaction. @throws NotFound */
export async function observeNetwork(transaction: Db, id: number): Promise<Observation> {
  const network = await readNetwork(transaction, id);
  const { routes, ...revision } = await readNetworkHealth(transaction, id);
  const stored = new Map((await listPeerHealth(transaction, id)).map((row) => [row.peer_id, row]));
  const peers = (await listPeers(transaction, id)).map((peer) => {
    const health = stored.get(peer.id);
    return { peer, health, report: readReport(health?.report ?? null) };
  });
  for (const { peer } of peers) stored.delete(peer.id);
  const unlisted = [...stored.values()].flatMap(({ peer_id, announced }) => (announced === null ? [] : [peer_id]));
  const isClosed = (await readMode(transaction, id)) === 'closed';
  const pairs = await listPairs(transaction, id);
  return { network, isClosed, revision, routes, peers, unlisted, pairs };
}

/** The stored time of a peer's lost connection; null if it made a stored request since then. */
export function lostAtOf(health: StoredHealth | undefined): string | null {
  const { lost_at = null, last_seen = null } = health ?? {};
  return lost_at !== null && last_seen !== null && last_seen > lost_at ? null : lost_at;
}

/** The time of a peer's last request in milliseconds; null for never. */
export type LastSeen = (peer: StoredObservation) => number | null;

export interface JudgedNetwork {
  readonly peers: ReadonlyMap<number, PeerVerdict>;
  /** The peers that made a request, or that a host reports to answer. */
  readonly answered: ReadonlySet<number>;
  readonly routes: ReadonlyMap<string, RouteVerdict & { readonly choices: readonly (number | null)[] }>;
}

/** The last event's state of a route that was up before. The connector is the last to serve it. */
export interface AnnouncedRoute {
  readonly state: 'up' | 'dead';
  readonly connector: number | null;
}

export function readAnnouncedRoutes({ routes }: Pick<Observation, 'routes'>): ReadonlyMap<string, AnnouncedRoute> {
  return new Map(Object.entries(JSON.parse(routes) as Record<string, AnnouncedRoute>));
}

/** Judges the peers and routes of a network. @param now milliseconds, like `listeningSince` */
export function judgeNetwork(
  observation: Pick<Observation, 'network' | 'peers' | 'routes'>,
  lastSeen: LastSeen,
  now: number,
  listeningSince: number,
): JudgedNetwork {
  const { network, peers: observed } = observation;
  const announced = readAnnouncedRoutes(observation);
  const listed = new Set(observed.map(({ peer }) => peer.id));
  const facts = observed.map((each) => {
    const lastSeenAt = lastSeen(each);
    const paths = each.report.paths.filter(({ peer }) => listed.has(peer));
    const lost = each.health?.lost_at ?? null;
    const lostAt =
      lost === null || (lastSeenAt !== null && lastSeenAt > Date.parse(lost)) ? null : Date.parse(lost) / 1000;
    return {
      id: each.peer.id,
      lastSeen: lastSeenAt === null ? null : lastSeenAt / 1000,
      announced: each.health?.announced ?? null,
      lostAt,
      probes: new Map(
        each.report.probes.flatMap(({ peer, answered, at }) =>
          // The clock was ahead, so it is no answer after a loss.
          Date.parse(at) > now ? [] : [[peer, { answered, at: Date.parse(at) / 1000 }] as const],
        ),
      ),
      paths: new Map(paths.map(({ peer, path }) => [peer, path])),
    };
  });
  const peers = judgePeers(facts, now / 1000, listeningSince / 1000);
  const answered = new Set(
    facts
      .filter(({ id, lastSeen: at, announced }) => {
        return at !== null || announced !== null || (peers.get(id)?.reachableBy ?? 0) > 0;
      })
      .map(({ id }) => id),
  );
  const isSilent = ({ peer }: StoredObservation) => peers.get(peer.id)?.isHeard !== true;
  const voters = observed.filter((each) => !isSilent(each));
  const connectors = observed
    .filter(({ peer }) => peer.peer_type === 'connector')
    .toSorted((one, other) => compareConnectors(one.peer, other.peer));
  const routes = network.routes.map((route) => {
    const serving = connectors.filter(({ peer }) => readService(network, peer).assigned.includes(route));
    const { votes, isUnreached } = readVotes(route, voters, new Set(serving.map(({ peer }) => peer.id)));
    const candidates = serving.map(
      ({ peer, report }): ObservedConnector => ({
        id: peer.id,
        state: peers.get(peer.id)?.state ?? 'unknown',
        isWithdrawn: readService(network, peer).withdrawn.includes(route),
        hasAnswered: answered.has(peer.id),
        isLanDown: report.routes.some((each) => each.route === route && each.lan === 'down'),
      }),
    );
    const isStatedUp = announced.get(route)?.state === 'up';
    const verdict = judgeRoute(candidates, votes, {
      now: now / 1000,
      isStatedUp,
      isUnreached,
      isSpread: network.spread,
    });
    return [route, { ...verdict, choices: votes.map(({ connector }) => connector) }] as const;
  });
  return { peers, answered, routes: new Map(routes) };
}

interface Votes {
  readonly votes: readonly RouteVote[];
  /** True if the only voter is left out, and has never reached a connector of the route. */
  readonly isUnreached: boolean;
}

/** Leaves out the only voter if it reaches no connector and no host: it is probably cut off. */
function readVotes(route: string, voters: readonly StoredObservation[], serving: ReadonlySet<number>): Votes {
  const votes = voters.flatMap(({ peer, report }) => {
    const vote = serving.has(peer.id) ? undefined : report.routes.find((each) => each.route === route);
    if (vote === undefined) return [];
    const { since = null } = report.unserved.find((each) => each.route === route) ?? {};
    const lostAt = since === null ? null : Date.parse(since) / 1000;
    return [{ connector: vote.connector, lostAt, report }];
  });
  const [only, ...others] = votes;
  const isCutOff =
    only?.connector === null &&
    others.length === 0 &&
    !only.report.paths.some(({ path }) => path === 'direct' || path === 'relayed');
  if (!isCutOff) return { votes, isUnreached: false };
  const paths = only.report.paths.filter(({ peer }) => serving.has(peer));
  return { votes: [], isUnreached: paths.length > 0 && paths.every(({ path }) => path === 'never') };
}
