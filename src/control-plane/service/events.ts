import type { Event } from '../../contract/event.ts';
import type { Caller } from '../domain/caller.ts';
import { listEvents } from '../store/events.ts';
import type { Context } from './context.ts';
import { requireNetwork } from './networks.ts';

export interface EventsRequest {
  /** The id of the last event that the client has; null for the newest ones. */
  readonly after: number | null;
  readonly limit: number;
  /** Ends the wait for an event. A request that does not wait brings an aborted one. */
  readonly signal: AbortSignal;
  readonly isDisconnected: () => boolean;
  /** Authenticates the request again: a wait may outlive the rights of its caller. */
  readonly authenticate: () => Promise<Caller>;
}

/** Events of a network, oldest first. Where there is none it waits for one; null when the client has disconnected. */
export async function readEvents(
  { db, healthNotifier }: Context,
  caller: Caller,
  network: number,
  { after, limit, signal, isDisconnected, authenticate }: EventsRequest,
): Promise<Event[] | null> {
  await requireNetwork(db, caller, network);
  for (let [isOver, isFirst] = [signal.aborted, true]; ; isFirst = false) {
    // The wait begins before the read, so that an event in between ends it.
    const changed = healthNotifier.wait(network, signal);
    const events = await listEvents(db, network, after, limit);
    if (isOver || events.length > 0) {
      if (!isFirst) await requireNetwork(db, await authenticate(), network);
      return events;
    }
    isOver = !(await changed);
    if (isDisconnected()) return null;
  }
}
