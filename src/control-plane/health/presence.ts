import type { Instance } from '../../core/health/verdict/instances.ts';
import type { PeerCaller } from '../domain/caller.ts';
import type { Context } from '../service/context.ts';
import { prunePresence, savePeerHealth } from '../store/health.ts';
import { pruneTraffic } from '../store/traffic.ts';
import { transact } from '../store/transact.ts';
import type { FailureLog } from './failure-log.ts';
import { observeInstances } from './observe-instances.ts';

const dayMs = 24 * 3600 * 1000;
const minuteMs = 60_000;
/** A peer without a request for this long is silent. */
export const silentMs = 90_000;
/** Peers per transaction. SQLite answers no other request during a transaction. */
const batch = 200;

export interface PresenceOptions {
  /** Days that a peer's last request is kept. With 0, only its time, while the peer is online. */
  readonly days: number;
  readonly flushMs: number;
  /** How long requests of peers that are not online in `Seen` accumulate before a write. */
  readonly settleMs: number;
  readonly failures: Pick<FailureLog, 'note'>;
  /** Called after a request of a peer that was not online was stored. */
  readonly onReturn: (network: number) => void;
}

interface Seen {
  readonly network: number;
  /** By the steady clock of this process, like all instants here. */
  at: number;
  version: string | null;
  platform: string | null;
  address: string;
  writtenAt: number | null;
  isOnline: boolean;
  /** The starts of its daemon since the last write: first and last request of each run. */
  instances: Instance[];
  /** The last start; null before the first. */
  instance: string | null;
  /** Since when the peer is cloned, according to this process. */
  clonedSince: number | null;
  requests: number;
}

/**
 * Keeps each peer's last request in memory, and writes it once a minute, at the latest at the start
 * of the next: other processes see each host that makes a request per minute.
 */
export class Presence {
  readonly #context: Context;
  readonly #options: PresenceOptions;
  readonly #presence = new Map<number, Seen>();
  /** Peers to write as soon as possible. */
  readonly #returned = new Set<number>();
  #soon: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isQueued = false;
  #isStopped = false;
  #prunedAt = Number.NEGATIVE_INFINITY;
  readonly #timer: NodeJS.Timeout;

  constructor(context: Context, options: PresenceOptions) {
    this.#context = context;
    this.#options = options;
    this.#timer = setInterval(() => void this.flush(), options.flushMs);
    this.#timer.unref();
    void this.flush();
  }

  touch(
    { peerId, networkId, address }: PeerCaller,
    { userAgent, instance }: { readonly userAgent?: string | undefined; readonly instance?: string | undefined },
  ): void {
    const at = this.#now();
    const { version, platform } = readUserAgent(userAgent);
    const presence = this.#presence.get(peerId) ?? {
      ...{ network: networkId, at, version, platform, address, ...unwritten },
      instances: [],
    };
    if (instance !== undefined && instanceForm.test(instance)) {
      const kept = this.#options.days > 0 ? { address } : {};
      presence.instances = addInstance(presence.instances, { id: instance, since: at, ...kept });
      // A new or returned start is written immediately: other processes may have stored it.
      if (presence.instance !== null && presence.instance !== instance) this.#writeSoon(peerId);
      presence.instance = instance;
    }
    const { at: last } = presence;
    Object.assign(presence, {
      at,
      address,
      version: version ?? presence.version,
      platform: platform ?? presence.platform,
    });
    // Another process may have stated that it is offline.
    if (at - last > silentMs) presence.isOnline = false;
    presence.requests += 1;
    this.#presence.set(peerId, presence);
    // An offline peer with a recent write needs no other, such as a suspended peer.
    if (presence.isOnline || (presence.writtenAt !== null && at - presence.writtenAt < this.#options.flushMs)) return;
    this.#writeSoon(peerId);
  }

  #writeSoon(peer: number): void {
    this.#returned.add(peer);
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      void this.flush();
    }, this.#options.settleMs);
  }

  /** Milliseconds since a peer's last request to this process; null without a stored one. */
  silenceOf(peer: number): number | null {
    const presence = this.#presence.get(peer);
    return presence === undefined || presence.writtenAt === null ? null : this.#now() - presence.at;
  }

  /** The number of a peer's requests to this process. Silent peers are forgotten. */
  requestsOf(peer: number): number {
    return this.#presence.get(peer)?.requests ?? 0;
  }

  /**
   * Writes a peer's requests since `lostAt`, and its next one, immediately. If a request of the
   * peer waits here, another connection was lost: the peer counts as seen after the loss.
   */
  expect(peer: number, lostAt: number, isWaiting = false): void {
    const presence = this.#presence.get(peer);
    if (!presence) return;
    if (isWaiting) presence.at = Math.max(presence.at, lostAt + 1);
    // Makes the last write old, so that the next request is written.
    const before = lostAt - this.#options.flushMs;
    Object.assign(presence, { isOnline: false, writtenAt: presence.writtenAt && Math.min(presence.writtenAt, before) });
    if (presence.at > lostAt) this.#writeSoon(peer);
  }

  /** Since when a peer is cloned, in milliseconds since 1970, or null. */
  clonedSince(peer: number): number | null {
    const since = this.#presence.get(peer)?.clonedSince ?? null;
    return since === null ? null : this.#context.now().getTime() - (this.#now() - since);
  }

  /** Sets the state of a peer in the last event. */
  setOnline(peer: number, isOnline: boolean): void {
    const presence = this.#presence.get(peer);
    if (presence) presence.isOnline = isOnline;
  }

  /** Writes pending requests. At most one write is queued, even if the database does not answer. */
  flush(): Promise<void> {
    if (this.#isQueued) return this.#writing;
    this.#isQueued = true;
    const note = (error: unknown) => this.#options.failures.note('presence', error);
    this.#writing = this.#writing.then(() => this.#write()).then(() => note(null), note);
    return this.#writing;
  }

  stop(): Promise<void> {
    clearInterval(this.#timer);
    clearTimeout(this.#soon);
    this.#isStopped = true;
    return this.flush();
  }

  async #write(): Promise<void> {
    this.#isQueued = false;
    const now = this.#now();
    // A peer that returns during the write joins the next one.
    const returned = new Set(this.#returned);
    this.#returned.clear();
    const isDue = ([peer, { at, writtenAt }]: readonly [number, Seen]) => {
      if (writtenAt === null || this.#isStopped || returned.has(peer)) return writtenAt === null || at > writtenAt;
      return at > writtenAt && minuteOf(peer, now) !== minuteOf(peer, writtenAt);
    };
    const due = [...this.#presence].filter(isDue).sort(([one], [other]) => one - other);
    try {
      for (let first = 0; first < due.length; first += batch)
        await this.#writeBatch(due.slice(first, first + batch), returned, now);
    } catch (error) {
      for (const peer of returned) this.#returned.add(peer);
      throw error;
    }
    const networks = new Set([...returned].flatMap((peer) => this.#presence.get(peer)?.network ?? []));
    for (const network of networks) this.#options.onReturn(network);
    for (const [peer, { at }] of this.#presence) if (now - at > 10 * minuteMs) this.#presence.delete(peer);
    if (now - this.#prunedAt >= dayMs) await this.#prune(now);
  }

  async #writeBatch(
    due: readonly (readonly [number, Seen])[],
    returned: ReadonlySet<number>,
    now: number,
  ): Promise<void> {
    const { db, readTime } = this.#context;
    const { days } = this.#options;
    const written = await transact(db, async (transaction) => {
      const ahead = (await readTime(transaction)).getTime() - this.#now();
      const instants = new Map<number, number>();
      for (const [peer, { at, version, platform, address }] of due) {
        const facts = days > 0 ? { version, platform, address } : {};
        const fields = { last_seen: new Date(at + ahead).toISOString(), ...facts };
        // With 0 days, an offline peer's last request is deleted. No late write stores it again.
        await savePeerHealth(transaction, peer, fields, { unlessOffline: days === 0 && !returned.has(peer) });
        instants.set(peer, at);
      }
      return instants;
    });
    for (const [peer, presence] of due) {
      const at = written.get(peer) ?? now;
      // A request that arrived during the transaction is not stored yet.
      presence.writtenAt = presence.at > at ? at : now;
    }
    const found = due.flatMap(([peer, presence]) => {
      const { network, instances } = presence;
      presence.instances = [];
      return instances.length === 0 ? [] : [{ peer, network, instances }];
    });
    const cloned = await observeInstances(this.#context, found, now);
    for (const [peer, presence] of due) if (cloned.has(peer)) presence.clonedSince = cloned.get(peer) ?? null;
  }

  async #prune(now: number): Promise<void> {
    const { db, readTime } = this.#context;
    const { days } = this.#options;
    const daysAgo = async (count: number) => new Date((await readTime(db)).getTime() - count * dayMs).toISOString();
    await prunePresence(db, days === 0 ? null : await daysAgo(days));
    await pruneTraffic(db, days === 0 ? null : await daysAgo(1));
    this.#prunedAt = now;
  }

  #now(): number {
    return this.#context.steadyNow();
  }
}

const unwritten = { writtenAt: null, isOnline: false, instance: null, clonedSince: null, requests: 0 };

/** The form of the id that a host chooses for a start of its daemon. */
const instanceForm = /^[0-9a-f]{16}$/;
/** The maximum between two writes. Some of many hosts with one identity are enough. */
const mostInstances = 16;

function addInstance(known: readonly Instance[], next: Instance): Instance[] {
  const [last, before] = known.toReversed();
  const isRepeated = last?.id === next.id && before?.id === next.id;
  return [...(isRepeated ? known.slice(0, -1) : known), next].slice(-mostInstances);
}

/** Minutes begin at different seconds per peer, so that peers are not written all at once. */
function minuteOf(peer: number, at: number): number {
  return Math.floor((at + (peer % 60) * 1000) / minuteMs);
}

const mostOfAgent = 64;

/** Parses the format `cpn/0.1.0 (linux x64)`. Returns nulls for other programs. */
function readUserAgent(text = ''): { readonly version: string | null; readonly platform: string | null } {
  const [, version, platform] = /^cpn\/([!-~]+)(?: +\(([ -~]*)\))?/.exec(text) ?? [];
  return { version: version?.slice(0, mostOfAgent) ?? null, platform: platform?.slice(0, mostOfAgent) || null };
}
