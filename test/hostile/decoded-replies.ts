import type { MaliciousReply, Outcome } from './malicious-reply.ts';

/** Families of values that no field may have. */
const families = ['injection', 'spelling', 'a wrong type'];
/** A network without peers is no wrong type: a second answer confirms it. */
const another = 'a wrong type: map: peers is []';

/** Whether the decoder decides about a reply alone: it refuses it, skips the peer, or leaves out of a ready text what no host applies. */
export function isDecided({ family, name, to, outcome }: MaliciousReply): boolean {
  if (to === 'enrolment') return [...families, 'a ready text'].includes(family) && isDecidedAtJoin(outcome);
  return families.includes(family) && !('nowhere' in outcome) && name !== another;
}

/** Whether nothing is left for the join to decide, such as a conflict with the host's own addresses. */
function isDecidedAtJoin(outcome: Outcome): boolean {
  if ('refused' in outcome) return outcome.undone !== true;
  return 'skipped' in outcome || outcome.nowhere.join() === 'owned';
}

/** The replies that a host of the lab receives: one of eight of a kind that the decoder decides about, and all others. */
export function forHosts(replies: readonly MaliciousReply[]): MaliciousReply[] {
  const decided = Map.groupBy(replies.filter(isDecided), kindOf);
  const sent = new Set([...decided.values()].flatMap((kind) => kind.filter((_, at) => at % 8 === 0)));
  return replies.filter((reply) => !isDecided(reply) || sent.has(reply));
}

export const kindOf = ({ family, to, outcome }: MaliciousReply): string => `${family} ${to} ${Object.keys(outcome)}`;
