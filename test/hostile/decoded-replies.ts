import type { MaliciousReply } from './malicious-reply.ts';

/** Families of values that no field may have. */
const families = ['injection', 'spelling', 'a wrong type'];
/** A network without peers is no wrong type: a second answer confirms it. */
const another = 'a wrong type: map: peers is []';

/** Whether the decoder of maps decides about a reply alone: it refuses the map, or skips the peer. */
export function isDecided({ family, name, to, outcome }: MaliciousReply): boolean {
  return to === 'map' && families.includes(family) && !('nowhere' in outcome) && name !== another;
}

/** The replies that a host of the lab receives: one of eight whose kind the decoder decides about, and all others. */
export function forHosts(replies: readonly MaliciousReply[]): MaliciousReply[] {
  const decided = replies.filter(isDecided);
  return replies.filter((reply) => !isDecided(reply) || decided.indexOf(reply) % 8 === 0);
}
