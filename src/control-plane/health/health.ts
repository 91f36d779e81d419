import type { Health, PeerHealth, ReportReply } from '../../contract/health.ts';
import type { PeerVerdict } from '../../core/health/verdict.ts';
import { createLongPoll, type LongPoll } from '../push/long-poll.ts';
import type { Context } from '../service/context.ts';
import { readNetworkHealth } from '../store/health.ts';
import type { JudgedNetwork, Observation, ObservedPeer } from './observe.ts';

/** Waits for a revision of a network's health. */
export function createHealthPoll({ db, healthNotifier }: Context): LongPoll {
  return createLongPoll({ db, notifier: healthNotifier }, ({ id }) => readNetworkHealth(db, id));
}

/** The health of a network with all its peers and routes. */
export function toHealth({ network, peers }: Observation, judged: JudgedNetwork): Health {
  return {
    peers: peers.flatMap((each) => toPeerHealth(each, judged.peers.get(each.peer.id)) ?? []),
    routes: network.routes.flatMap((route) => {
      const verdict = judged.routes.get(route);
      if (!verdict) return [];
      const { state, connector, standby, why } = verdict;
      return [{ route, state, connector, standby: [...standby], why }];
    }),
  };
}

/** The health of one peer, as the peer itself reads it. */
export function toOwnHealth({ peers }: Observation, judged: JudgedNetwork, id: number): Health {
  const own = peers.find(({ peer }) => peer.id === id);
  const health = own && toPeerHealth(own, judged.peers.get(id));
  return { peers: health ? [health] : [], routes: [] };
}

export function toReply({ state, reachableBy, witnesses, why }: PeerVerdict): ReportReply {
  return { state, reachable_by: reachableBy, witnesses, why };
}

function toPeerHealth({ peer, health, report }: ObservedPeer, verdict: PeerVerdict | undefined): PeerHealth | null {
  if (!verdict) return null;
  return {
    ...{ id: peer.id, name: peer.name },
    ...toReply(verdict),
    last_seen: health?.last_seen ?? null,
    version: health?.version ?? null,
    platform: health?.platform ?? null,
    source_address: health?.address ?? null,
    reported_at: health?.reported_at ?? null,
    paths: [...report.paths],
    routes: [...report.routes],
    drift: report.drift,
    pin_mismatches: [...report.pin_mismatches],
    problem: report.problem,
  };
}
