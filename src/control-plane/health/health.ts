import type { Health, PathHealth, PeerHealth, PeerPath, ReportReply } from '../../contract/health.ts';
import type { PeerVerdict } from '../../core/health/verdict/verdict.ts';
import { readPair } from '../paths/round.ts';
import { showPair } from '../paths/show-pair.ts';
import { createLongPoll, type LongPoll } from '../push/long-poll.ts';
import type { Context } from '../service/context.ts';
import { readNetworkHealth } from '../store/health.ts';
import type { HealthEvaluation } from './evaluate.ts';
import type { Observation, StoredObservation } from './observe.ts';

/** Waits for a revision of a network's health. */
export function createHealthPoll({ db, healthNotifier }: Context): LongPoll {
  return createLongPoll({ db, notifier: healthNotifier }, ({ id }) => readNetworkHealth(db, id));
}

/** By reader: owners and admins get the endpoints that hosts tried. */
const texts = {
  administrator: new WeakMap<HealthEvaluation, Buffer>(),
  other: new WeakMap<HealthEvaluation, Buffer>(),
};
type Reader = keyof typeof texts;

/** The body of a reply, serialized only once for concurrent readers of the network. */
export function serializeHealth(evaluation: HealthEvaluation, reader: Reader): Buffer {
  const text = texts[reader].get(evaluation) ?? Buffer.from(JSON.stringify({ data: toHealth(evaluation, reader) }));
  texts[reader].set(evaluation, text);
  return text;
}

function toHealth(evaluation: HealthEvaluation, reader: Reader): Health {
  const { observation, judged } = evaluation;
  const { network, peers } = observation;
  const showPath = createPathView(observation, reader);
  return {
    peers: peers.flatMap((each) => toPeerHealth(each, evaluation, showPath) ?? []),
    routes: network.routes.flatMap((route) => {
      const verdict = judged.routes.get(route);
      if (!verdict) return [];
      const { state, connector, standby, neverAnswered, why, shares } = verdict;
      const lists = {
        standby: [...standby],
        never_answered: [...neverAnswered],
        ...(shares && { shares: [...shares] }),
      };
      return [{ route, state, connector, ...lists, why }];
    }),
    ...(network.relay !== null && { relay: network.relay }),
  };
}

/** The health of a peer in the form that the peer reads: its reported paths as they are. */
export function toOwnHealth(evaluation: HealthEvaluation, id: number): Health {
  const own = evaluation.observation.peers.find(({ peer }) => peer.id === id);
  const health = own && toPeerHealth(own, evaluation, (_, path) => path);
  return { peers: health ? [health] : [], routes: [] };
}

type PathView = (from: number, path: PeerPath) => PathHealth;

/** Adds to reported paths what is stored of their pairs. */
function createPathView({ pairs }: Pick<Observation, 'pairs'>, reader: Reader): PathView {
  const keyOf = (one: number, other: number) => `${Math.min(one, other)} ${Math.max(one, other)}`;
  const stored = new Map(pairs.map((pair) => [keyOf(pair.a, pair.b), pair]));
  return (from, path) => {
    const pair = stored.get(keyOf(from, path.peer));
    return pair === undefined ? path : showPair(path, readPair(pair), reader === 'administrator');
  };
}

export function toReply({ state, reachableBy, witnesses, why }: PeerVerdict): ReportReply {
  return { state, reachable_by: reachableBy, witnesses, why };
}

function toPeerHealth(
  { peer, health, report }: StoredObservation,
  { judged, keepsPresence }: HealthEvaluation,
  showPath: PathView,
): PeerHealth | null {
  const verdict = judged.peers.get(peer.id);
  if (!verdict) return null;
  return {
    ...{ id: peer.id, name: peer.name },
    ...toReply(verdict),
    last_seen: (keepsPresence && health?.last_seen) || null,
    version: health?.version ?? null,
    platform: health?.platform ?? null,
    source_address: health?.address ?? null,
    reported_at: (keepsPresence && health?.reported_at) || null,
    paths: report.paths.map((path) => showPath(peer.id, path)),
    routes: [...report.routes],
    ...(peer.peer_type === 'connector' && report.map.length > 0 && { map: [...report.map] }),
    drift: report.drift,
    pin_mismatches: [...report.pin_mismatches],
    problem: report.problem,
    ...(peer.peer_type === 'connector' && { never_answered: !judged.answered.has(peer.id) }),
  };
}
