import type { Instance } from '../../core/health/instances.ts';
import type { PeerCaller } from '../domain/caller.ts';
import type { Context } from '../service/context.ts';
import { prunePresence, savePeerHealth } from '../store/health.ts';
import { pruneTraffic } from '../store/traffic.ts';
import { transact } from '../store/transact.ts';
import type { FailureLog } from './failure-log.ts';
import { observeInstances } from './observe-instances.ts';

const dayMs = 24 * 3600 * 1000;
const minuteMs = 60_000;
/** Without a request for so long, a peer is silent. */
export const silentMs = 90_000;
/** Peers of one transaction: SQLite answers no request meanwhile. */
const batch = 200;

export interface PresenceOptions {
  /** Days that the last request of a peer is kept. 0 keeps when a peer was seen while it is online, and nothing else. */
  readonly days: number;
  readonly flushMs: number;
  /** How long requests of peers that are not known to be online gather before they are written. */
  readonly settleMs: number;
  readonly failures: Pick<FailureLog, 'note'>;
  /** A peer that was not known to be online made a request, which is stored. */
  readonly onReturn: (network: number) => void;
}

interface Seen {
  readonly network: number;
  /** By the steady clock of this process, as all instants here. */
  at: number;
  version: string | null;
  platform: string | null;
  address: string;
  writtenAt: number | null;
  isOnline: boolean;
  /** The starts of its daemon that made requests since the last write; of each in a row the first and the last request. */
  instances: Instance[];
  /** The last one; null before the first. */
  instance: string | null;
  /** Since when it is cloned, as far as this process knows. */
  clonedSince: number | null;
  requests: number;
}

/**
 * The last request of each peer: in memory, and in the database once a minute. A request in the minutes that follow is written at the
 * start of the next one at the latest, so that other processes see each host that calls once a minute.
 */
export class Presence {
  readonly #context: Context;
  readonly #options: PresenceOptions;
  readonly #presence = new Map<number, Seen>();
  /** Peers to write as soon as possible. */
  readonly #returned = new Set<number>();
  #soon: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  /** A write has not begun yet. */
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

  /** Counts a request of a peer. */
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
      // A start that is new, or back, is written at once: other processes may know it.
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
    // What is written already brings no news, as the requests of a peer that is suspended.
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

  /** Milliseconds since the last request of a peer to this process; null for none, and until the first of them is stored. */
  silenceOf(peer: number): number | null {
    const presence = this.#presence.get(peer);
    return presence === undefined || presence.writtenAt === null ? null : this.#now() - presence.at;
  }

  /** How many requests of a peer this process received; it forgets silent peers. */
  requestsOf(peer: number): number {
    return this.#presence.get(peer)?.requests ?? 0;
  }

  /**
   * A connection of a peer was lost at this instant: its requests since then, and its next one, are written at once. A peer with a
   * request that waits here has lost another connection, and is seen after that.
   */
  expect(peer: number, lostAt: number, isWaiting = false): void {
    const presence = this.#presence.get(peer);
    if (!presence) return;
    if (isWaiting) presence.at = Math.max(presence.at, lostAt + 1);
    // As if nothing was written lately: then the next request is.
    const before = lostAt - this.#options.flushMs;
    Object.assign(presence, { isOnline: false, writtenAt: presence.writtenAt && Math.min(presence.writtenAt, before) });
    if (presence.at > lostAt) this.#writeSoon(peer);
  }

  /** Since when a peer is cloned, in milliseconds since 1970; null where it is not. */
  clonedSince(peer: number): number | null {
    const since = this.#presence.get(peer)?.clonedSince ?? null;
    return since === null ? null : this.#context.now().getTime() - (this.#now() - since);
  }

  /** Notes what the last event stated of a peer. */
  setOnline(peer: number, isOnline: boolean): void {
    const presence = this.#presence.get(peer);
    if (presence) presence.isOnline = isOnline;
  }

  /** Writes what is due. At most one write waits for the one under way, however long the database does not answer. */
  flush(): Promise<void> {
    if (this.#isQueued) return this.#writing;
    this.#isQueued = true;
    const note = (error: unknown) => this.#options.failures.note('presence', error);
    this.#writing = this.#writing.then(() => this.#write()).then(() => note(null), note);
    return this.#writing;
  }

  /** Writes all. */
  stop(): Promise<void> {
    clearInterval(this.#timer);
    clearTimeout(this.#soon);
    this.#isStopped = true;
    return this.flush();
  }

  async #write(): Promise<void> {
    this.#isQueued = false;
    const now = this.#now();
    const returned = [...this.#returned];
    const isDue = ([peer, { at, writtenAt }]: readonly [number, Seen]) => {
      if (writtenAt === null || this.#isStopped || this.#returned.has(peer))
        return writtenAt === null || at > writtenAt;
      return at > writtenAt && minuteOf(peer, now) !== minuteOf(peer, writtenAt);
    };
    const due = [...this.#presence].filter(isDue).sort(([one], [other]) => one - other);
    for (let first = 0; first < due.length; first += batch)
      await this.#writeBatch(due.slice(first, first + batch), now);
    const networks = new Set(returned.flatMap((peer) => this.#presence.get(peer)?.network ?? []));
    // Not those that returned while this was written.
    for (const peer of returned) this.#returned.delete(peer);
    for (const network of networks) this.#options.onReturn(network);
    for (const [peer, { at }] of this.#presence) if (now - at > 10 * minuteMs) this.#presence.delete(peer);
    if (now - this.#prunedAt >= dayMs) await this.#prune(now);
  }

  async #writeBatch(due: readonly (readonly [number, Seen])[], now: number): Promise<void> {
    const { db, readTime } = this.#context;
    const written = await transact(db, async (transaction) => {
      const ahead = (await readTime(transaction)).getTime() - this.#now();
      const instants = new Map<number, number>();
      for (const [peer, { at, version, platform, address }] of due) {
        const facts = this.#options.days > 0 ? { version, platform, address } : {};
        await savePeerHealth(transaction, peer, { last_seen: new Date(at + ahead).toISOString(), ...facts });
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

/** What a host chooses as the id of a start of its daemon. */
const instanceForm = /^[0-9a-f]{16}$/;
/** Between two writes: of more than two hosts with one identity some are enough. */
const mostInstances = 16;

function addInstance(known: readonly Instance[], next: Instance): Instance[] {
  const [last, before] = known.toReversed();
  const isRepeated = last?.id === next.id && before?.id === next.id;
  return [...(isRepeated ? known.slice(0, -1) : known), next].slice(-mostInstances);
}

/** Minutes begin at another second for each peer, so that the peers of a network are not written all at once. */
function minuteOf(peer: number, at: number): number {
  return Math.floor((at + (peer % 60) * 1000) / minuteMs);
}

const mostOfAgent = 64;

/** What `cpn/0.1.0 (linux x64)` says; nulls for another program. */
function readUserAgent(text = ''): { readonly version: string | null; readonly platform: string | null } {
  const [, version, platform] = /^cpn\/([!-~]+)(?: +\(([ -~]*)\))?/.exec(text) ?? [];
  return { version: version?.slice(0, mostOfAgent) ?? null, platform: platform?.slice(0, mostOfAgent) || null };
}
