import type { AdminService, Event } from '../../api/admin-service.ts';
import { Unreachable } from '../../core/errors/index.ts';
import type { Id } from '../../core/map/model.ts';
import { backoffDelay } from '../../core/util/backoff.ts';

const pageSize = 1000;
/** Proxies such as nginx close a connection after 60 s of silence. */
const waitSeconds = 50;
const backoff = { baseMs: 1000, capMs: 15_000 };
/** Between two polls, also for a service that does not wait although it describes that it does. */
const pauseMs = { afterWait: 1000, withoutWait: 5000 };

type Service = Pick<AdminService, 'readEvents'>;

interface WantedEvents {
  /** Only events after this one; if absent, the newest ones. */
  readonly after?: Id | undefined;
  readonly limit: number;
  /** Empty for all. */
  readonly types: readonly string[];
}

/** Reads up to `limit` events, oldest first: the newest, or the first after `after`. */
export async function readEvents(
  service: Service,
  network: Id,
  { after, limit, types }: WantedEvents,
): Promise<Event[]> {
  const isWanted = ({ type }: Event) => types.length === 0 || types.includes(type);
  if (after === undefined && types.length === 0 && limit <= pageSize) {
    return (await service.readEvents(network, { limit })).events;
  }
  let found: Event[] = [];
  for (let last = after ?? 0; ; ) {
    const { events } = await service.readEvents(network, { after: last, limit: pageSize });
    // The service replies with its newest events if it has no event as new as `last`.
    if (!events.every(({ id }) => isAfter(id, last))) return found;
    const newest = events.at(-1);
    found = [...found, ...events.filter(isWanted)];
    if (after === undefined) found = found.slice(-limit);
    if (newest === undefined || (after !== undefined && found.length >= limit)) return found.slice(0, limit);
    last = newest.id;
  }
}

/** Returns the newest event if it is older than `after`, which is then unknown; else null. */
export async function findOlderNewest(service: Service, network: Id, after: number): Promise<Event | null> {
  const newest = (await service.readEvents(network, { limit: 1 })).events.at(-1);
  return typeof newest?.id === 'number' && newest.id < after ? newest : null;
}

interface Patience {
  /** Ends with the signal. */
  sleep(milliseconds: number): Promise<unknown>;
  /** In [0, 1). */
  readonly random: () => number;
  /** Called at the first of several failures, and with null at the next success. */
  onOutage(error: Unreachable | null): void;
}

/** Runs `work`, and repeats it while its error satisfies `passes`. */
export async function withPatience<Result>(
  work: () => Promise<Result>,
  { sleep, random, onOutage }: Patience,
  passes: (error: Unreachable) => boolean = () => true,
): Promise<Result> {
  for (let failures = 0; ; ) {
    try {
      const result = await work();
      if (failures > 0) onOutage(null);
      return result;
    } catch (error) {
      if (!(error instanceof Unreachable && passes(error))) throw error;
      failures += 1;
      if (failures === 1) onOutage(error);
      await sleep(Math.max(error.retryAfterMs ?? 0, backoffDelay(failures, backoff, random())));
    }
  }
}

interface EventCursor extends Patience {
  /** The last known event: its id, and its instant if known. */
  readonly last: Pick<Event, 'id'> & Partial<Pick<Event, 'at'>>;
  readonly signal: AbortSignal;
}

/** Yields each event after the last one, once, also across outages. Ends by the signal's error. */
export async function* followEvents(service: Service, network: Id, following: EventCursor): AsyncGenerator<Event> {
  const { signal, sleep } = following;
  const wait = { seconds: waitSeconds, signal };
  for (let { id: after, at = '' } = following.last; ; ) {
    const page = { after, limit: pageSize, wait };
    const { events, waited } = await withPatience(() => service.readEvents(network, page), following);
    // After a restore no event is as new; the service then replies with its newest ones.
    const isRestored = !events.every(({ id }) => isAfter(id, page.after));
    const fresh = isRestored ? events.filter((event) => event.at > at) : events;
    yield* fresh;
    after = events.at(-1)?.id ?? after;
    at = fresh.at(-1)?.at ?? at;
    if (fresh.length === 0) await sleep(waited ? pauseMs.afterWait : pauseMs.withoutWait);
  }
}

function isAfter(id: Id, last: Id): boolean {
  return typeof id === 'number' && typeof last === 'number' ? id > last : String(id) !== String(last);
}
