/**
 * The liveness of a connector as the other hosts observe it, estimated from the packets that it
 * receives: hosts probe their connectors, so packets of some peer arrive while it is reachable.
 *
 * @module
 */
import { type Liveness, recordAnswer, recordTime, unknownLiveness } from './liveness.ts';

/** Seconds between two probes of a host: the connector in service, and a standby. */
export const everyInService = 0.5;
export const everyOther = 2.5;
/** Seconds between two rounds of a host, in which it probes what is due. */
export const everyRound = everyInService / 2;

/** Seconds by which hosts may trust it later than it receives their packets. */
const lag = everyOther + everyInService;

/** Without a packet yet, a handshake may still take its time. */
export function newOwnLiveness(state: Liveness['state']): Liveness {
  return { ...unknownLiveness(state), heard: false, answers: null };
}

/** Records a packet of any peer. */
export function recordPacket(own: Liveness): Liveness {
  return recordAnswer(own, 'answer');
}

/** Records that the tunnel came up: the hosts may have missed it. */
export function recordStart(own: Liveness): Liveness {
  const failures = own.failures + (own.state === 'trusted' ? 1 : 0);
  return { ...own, state: 'back', heard: false, answers: null, silence: 0, well: -lag, failures };
}

/** Records the time since the last observation, by the limits of the other hosts. */
export function recordOwnTime(before: Liveness, seconds: number, inService: boolean): Liveness {
  const every = inService ? everyInService : everyOther;
  const circumstances = { inService, hasOther: false, isNamedRelay: false, isOnlyRelay: false };
  const after = recordTime(before, { seconds, every, ...circumstances });
  return before.state === 'silent' && after.state === 'back' ? { ...after, well: after.well - lag } : after;
}
