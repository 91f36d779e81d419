import { createPeerChangeLimit } from '../service/peer-change-limit.ts';
import { type EventSubject, reportedPeers } from './transitions.ts';

/**
 * Events about the state of one peer or route, and of all peers that only other hosts report of: so many at once, and
 * one more each interval. Any host can report what makes others look dead or alive that the control plane does not hear.
 */
const stateEvents = { most: 10, refillMs: 600_000 } as const;
const reportedEvents = { most: 60, refillMs: 60_000 } as const;

/** How many events may be stated about each subject of each network. */
export interface EventLimits {
  /** Whether `count` more events may be stated now. */
  readonly hasRoom: (network: number, subject: EventSubject, count?: number) => boolean;
  /** Counts the events that were stated. */
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
