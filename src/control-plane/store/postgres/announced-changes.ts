import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { LRUCache } from 'lru-cache';
import { createBoundedCache } from '../../bounded-cache.ts';
import type { StoreEvents, Topic } from '../database.ts';
import type { Db } from '../tables.ts';

/** Reads a text per network that differs after each change of the topic. Omits missing networks. */
type ReadMarks = (db: Db, networks: readonly number[], readsAll: boolean) => Promise<readonly Mark[]>;

interface Mark {
  readonly network: number;
  readonly mark: string;
}

const readMarks: Readonly<Record<Topic, ReadMarks>> = {
  map: async (db, networks) => {
    const { rows } = await sql<Mark>`
      select id as network, revision || ' ' || nonce as mark from networks where id = any(${networks})`.execute(db);
    return rows;
  },
  health: async (db, networks) => {
    const { rows } = await sql<Mark>`
      select network_id as network, revision || ' ' || nonce as mark from network_health
        where network_id = any(${networks})`.execute(db);
    return rows;
  },
  messages: async (db, networks, readsAll) => {
    const named = readsAll ? sql`` : sql`where network_id = any(${networks})`;
    const { rows } = await sql<Mark>`
      select network_id as network, max(id) || ' ' || count(*) as mark
        from peer_messages ${named} group by network_id`.execute(db);
    return rows;
  },
};
const topics = Object.keys(readMarks) as Topic[];
const gone = 'gone';

/** Networks that hints of messages may name. Beyond it, the messages of all networks are read. */
const mostNamed = 1_000;
/** The number of networks whose last marks are kept. */
const mostKnown = 100_000;
/** The pause after a check without changes doubles between these limits. */
const shortestPauseMs = 5;
const longestPauseMs = 100;
const pauseAfterFailureMs = 1_000;
/** The maximum share of the time that checks take. */
const share = 1 / 4;

/**
 * Any role that may connect to the database can send announcements, so each is only a hint to read.
 * Hints accumulate during a read, and all cost one read of each topic at a time.
 */
export class AnnouncedChanges {
  readonly #db: Db;
  readonly #events: Pick<StoreEvents, 'notify' | 'isAwaited'>;
  readonly #hints: Readonly<Record<Topic, Set<number>>> = { map: new Set(), health: new Set(), messages: new Set() };
  readonly #known: Readonly<Record<Topic, LRUCache<number, string>>>;
  readonly #end = new AbortController();
  #hasMoreMessages = false;
  #running: Promise<void> | undefined;
  #pausedUntil = 0;
  #failures = 0;

  constructor(db: Db, events: Pick<StoreEvents, 'notify' | 'isAwaited'>) {
    this.#db = db;
    this.#events = events;
    const cache = () => createBoundedCache<number, string>(mostKnown);
    this.#known = { map: cache(), health: cache(), messages: cache() };
  }

  /** Drops hints without a waiting request here, except of messages: their hosts need not wait. */
  note(network: number, topic: Topic): void {
    const hints = this.#hints[topic];
    if (topic === 'messages' && hints.size >= mostNamed) this.#hasMoreMessages ||= !hints.has(network);
    else if (topic === 'messages' || this.#events.isAwaited(network, topic)) hints.add(network);
    else return;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#end;
    do {
      // Lets the other notifications of the same commit arrive, at least.
      const pauseMs = Math.max(0, this.#pausedUntil - performance.now());
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      const startedAt = performance.now();
      const pauseAfterMs = await this.#check();
      const now = performance.now();
      this.#pausedUntil = now + Math.max(pauseAfterMs, (now - startedAt) * (1 / share - 1));
    } while (topics.some((topic) => this.#hints[topic].size > 0));
  }

  /** Reads the hinted networks, and notifies of changed ones. Returns the pause in milliseconds. */
  async #check(): Promise<number> {
    let isFruitless = true;
    for (const topic of topics) {
      const hints = this.#hints[topic];
      const networks = [...hints];
      if (networks.length === 0) continue;
      const readsAll = topic === 'messages' && this.#hasMoreMessages;
      hints.clear();
      if (readsAll) this.#hasMoreMessages = false;
      try {
        const changed = await this.#findChanged(topic, networks, readsAll);
        for (const network of changed) this.#events.notify(network, topic);
        if (changed.length > 0) isFruitless = false;
      } catch {
        // The database has a problem. Requests report it.
        for (const network of networks) hints.add(network);
        this.#hasMoreMessages ||= readsAll;
        return pauseAfterFailureMs;
      }
    }
    this.#failures = isFruitless ? this.#failures + 1 : 0;
    return isFruitless ? Math.min(shortestPauseMs * 2 ** (this.#failures - 1), longestPauseMs) : 0;
  }

  async #findChanged(topic: Topic, networks: readonly number[], readsAll: boolean): Promise<number[]> {
    const known = this.#known[topic];
    const rows = await readMarks[topic](this.#db, networks, readsAll);
    const marks = new Map(rows.map(({ network, mark }) => [network, mark]));
    // A network without messages has no row and no change.
    return (topic === 'messages' ? [...marks.keys()] : networks).filter((network) => {
      const mark = marks.get(network) ?? gone;
      if (known.get(network) === mark) return false;
      known.set(network, mark);
      return true;
    });
  }
}
