import type { Joined } from '../../store/state/state.ts';

/** How a person reads that a network was deleted; null of one that was not. */
export function describeDeletion({ interface: link, deletion, membership, service }: Joined): string | null {
  if (deletion === undefined) return null;
  const back = deletion.resumes
    ? `it comes back by itself once ${service.url} has the network again`
    : `"cpn up ${link}" brings it up once ${service.url} has the network again`;
  return `network ${membership.map.name} was deleted at ${service.url}, received ${deletion.at}: the tunnel is down; ${back}; "cpn leave ${link}" removes what is kept of it`;
}

/** Says that a change of keys is not over; null where there is none. */
export function describeRotation({ rotation, interface: link }: Joined): string | null {
  if (rotation === null) return null;
  const how = {
    announcing: 'a new key was made, and the control plane may not know of it yet',
    confirming: 'the new key is in use, and no peer answered to it yet',
    returning: 'no peer answered to the new key, and the control plane may not know yet that the old one is to stay',
  }[rotation.phase];
  return `a change of the key of ${link} is not over: ${how}; the daemon, or "cpn reconcile", goes on with it`;
}
