import type { Joined } from '../../store/state/state.ts';

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
