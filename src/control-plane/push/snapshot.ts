import { LRUCache } from 'lru-cache';
import { createKeyedMutex } from '../concurrency.ts';
import { isSameRevision, listChanges, type Revision } from '../store/changes.ts';
import { findNetwork, type StoredNetwork } from '../store/networks.ts';
import { listTokenMarks } from '../store/peers/peer-lists.ts';
import type { Db } from '../store/tables.ts';

/**
 * A revision, and the logical time at which its read ended. After a restore, revisions of two
 * histories have no order, but the reads of this process have.
 */
export interface ObservedRevision extends Revision {
  readonly at: number;
}

/** A cached revision of a network, and a logical time before its read. */
export interface CachedRevision {
  readonly revision: Revision;
  readonly readAt: number;
}

let lastTime = 0;

/** Returns a higher number at each call. */
export function nextLogicalTime(): number {
  lastTime += 1;
  return lastTime;
}

/** True for an entry of the observed revision, or one that was read after the observation. */
export function isFresh({ revision, readAt }: CachedRevision, observed: ObservedRevision): boolean {
  return isSameRevision(revision, observed) || readAt > observed.at;
}

/** The marks of the tokens of a network's peers, by peer id. */
export type TokenMarks = ReadonlyMap<number, number>;

export interface Snapshot {
  /** Undefined if the organization has no such network. */
  readonly network: (StoredNetwork & ObservedRevision) | undefined;
  /** The awaited revision. */
  readonly revision: ObservedRevision | undefined;
  /** The peers of the network, read on the first call, so never older than `network`. */
  readonly peers: () => Promise<TokenMarks>;
}

export type ReadRevision = (network: StoredNetwork) => Promise<Revision>;

/** Reads a network of an organization, with everything committed before the call. */
export type ReadSnapshot = (organization: number, network: number) => Promise<Snapshot>;

/** Calls before a read begins share it: a change costs one read for any number of connectors. */
export function createSnapshots(db: Db, readRevision?: ReadRevision): ReadSnapshot {
  const readPeers = createPeerReader(db);
  const pending = new Map<string, Promise<Snapshot>>();
  return (organization, id) => {
    const key = `${organization} ${id}`;
    const shared = pending.get(key);
    if (shared) return shared;
    const snapshot = nextTurn().then(async () => {
      pending.delete(key);
      const found = await findNetwork(db, organization, id);
      const read = found && ((await readRevision?.(found)) ?? found);
      const at = nextLogicalTime();
      const network = found && { ...found, at };
      const revision = read && { revision: read.revision, nonce: read.nonce, at };
      let peers: Promise<TokenMarks> | undefined;
      const readOnce = async () => (network ? readPeers(id, network) : new Map<number, number>());
      return {
        network,
        revision,
        peers: () => {
          peers ??= readOnce();
          return peers;
        },
      };
    });
    pending.set(key, snapshot);
    return snapshot;
  };
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Reads the peers of a network at the observed revision or later. */
export type ReadPeers = (network: number, observed: ObservedRevision) => Promise<TokenMarks>;

interface CachedPeers extends CachedRevision {
  readonly marks: Map<number, number>;
}

/** A cached peer takes about 60 bytes. */
const maxCachedPeers = 1_000_000;

/** Reads all peers of a network once, and later only the changed ones. */
export function createPeerReader(db: Db, maxPeers = maxCachedPeers): ReadPeers {
  const cache = new LRUCache<number, CachedPeers>({
    maxSize: maxPeers,
    sizeCalculation: ({ marks }) => marks.size + 1,
  });
  const lock = createKeyedMutex();
  return (network, observed) =>
    lock(String(network), async () => {
      const cached = cache.get(network);
      if (cached && isFresh(cached, observed)) return cached.marks;
      // The update is in place, so after an error half-way all peers are read again.
      cache.delete(network);
      const updated = await updatePeers(db, network, observed, cached);
      cache.set(network, updated);
      return updated.marks;
    });
}

async function updatePeers(
  db: Db,
  network: number,
  observed: ObservedRevision,
  cached: CachedPeers | undefined,
): Promise<CachedPeers> {
  const readAt = nextLogicalTime();
  const changes = cached ? await listChanges(db, network, cached.revision) : null;
  const byRevision = new Map(changes?.map((change) => [change.revision, change]));
  const latest = Math.max(observed.revision, ...byRevision.keys());
  // A revision without a change record may concern any peer.
  if (!cached || changes === null || byRevision.size !== latest - cached.revision.revision) {
    return { revision: observed, readAt, marks: new Map(await listTokenMarks(db, network)) };
  }
  const changed = new Set(changes.flatMap(({ peer }) => peer ?? []));
  const present = changed.size === 0 ? [] : await listTokenMarks(db, network, [...changed]);
  for (const id of changed) cached.marks.delete(id);
  for (const [id, mark] of present) cached.marks.set(id, mark);
  return { revision: byRevision.get(latest) ?? cached.revision, readAt, marks: cached.marks };
}
