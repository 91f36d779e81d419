import { createPeerChangeLimit } from '../service/peer-change-limit.ts';
import { type EventSubject, reportedPeers } from './transitions.ts';

/**
 * Rate limits of events: about the state of one peer or route, and about all peers that only other
 * hosts report. `most` events at once, and one more per interval. Any host can report states that
 * make other hosts seem to fail and return, if the control plane receives no requests from them.
 */
const stateEvents = { most: 10, refillMs: 600_000 } as const;
const reportedEvents = { most: 60, refillMs: 60_000 } as const;

/** Limits the events about each subject of each network. */
export interface EventLimits {
  /** True if `count` more events about the subject are within the limit. */
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
