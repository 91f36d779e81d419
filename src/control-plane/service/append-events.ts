import type { Event } from '../../contract/event.ts';
import { makeNonce } from '../store/changes.ts';
import { insertDelivery } from '../store/deliveries.ts';
import { insertEvent } from '../store/events.ts';
import { reviseHealth } from '../store/health.ts';
import type { Db } from '../store/tables.ts';
import type { Context } from './context.ts';

/** An event before it is stored. */
export type NewEvent = Pick<Event, 'type'> & Partial<Pick<Event, 'peer' | 'route' | 'details'>>;

/**
 * Stores events of a network, also for the webhook, in the transaction of their cause. Announces
 * them to the other processes. The caller notifies this process after the commit. Other events of
 * the network wait until then, so that a reader of newer ids has all older ones.
 */
export async function appendEvents(
  { random, readTime, webhookTypes, announce }: Pick<Context, 'random' | 'readTime' | 'webhookTypes' | 'announce'>,
  transaction: Db,
  network: number,
  events: readonly NewEvent[],
): Promise<void> {
  await reviseHealth(transaction, network, makeNonce(random));
  const at = (await readTime(transaction)).toISOString();
  for (const { type, peer = null, route = null, details = {} } of events) {
    const id = await insertEvent(transaction, { network, at, type, peer, route, details });
    const event: Event = { id, at, type, network, peer, route, details };
    if (webhookTypes.has(type)) await insertDelivery(transaction, event);
  }
  await announce(transaction, network, 'health');
}
