import type { Event } from '../../contract/event.ts';
import type { Caller } from '../domain/caller.ts';
import { listEvents } from '../store/events.ts';
import type { Context } from './context.ts';
import { requireNetwork } from './networks.ts';

export interface EventsRequest {
  /** The id of the last event that the client has; null for the newest events. */
  readonly after: number | null;
  readonly limit: number;
  /** Ends the wait for an event. A request without a wait passes an aborted signal. */
  readonly signal: AbortSignal;
  readonly isDisconnected: () => boolean;
  /** Authenticates the request again: a wait may outlive the rights of its caller. */
  readonly authenticate: () => Promise<Caller>;
}

/** Returns a network's events, oldest first, or waits for one. Null if the client disconnected. */
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
