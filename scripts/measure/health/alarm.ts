import type { Event } from '../../../src/contract/event.ts';

/** True for an event that an operator acts on. In the labs here nothing causes one. */
export function isAlarm({ type }: Event): boolean {
  return type === 'peer.offline' || type === 'route.dead' || type === 'reconcile.failing';
}
