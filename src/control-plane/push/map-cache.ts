import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import { NetworkDelta } from '../../contract/network.ts';
import { reply } from '../../contract/reply.ts';
import { createKeyedMutex } from '../concurrency.ts';
import type { Revision } from '../store/changes.ts';
import type { Db } from '../store/tables.ts';
import { listRemoved, readDelta, readDeltaOrAll } from './network-delta.ts';
import { addRemoved, SerializedNetwork, unpooledBuffer } from './serialized-network.ts';
import { type CachedRevision, isFresh, nextLogicalTime, type ObservedRevision } from './snapshot.ts';
import { formatETag } from './to-contract.ts';

/** A network, or its changes since an earlier revision, as the body of a reply. */
export interface MapText {
  /** The requested revision or a later one. */
  readonly revision: Revision;
  /** The revision that a delta starts from; null for the whole network. */
  readonly base: Revision | null;
  readonly bytes: Buffer;
}

/** A request for a map. The caller has checked that the client may read the network. */
export interface MapRead {
  readonly id: number;
  readonly revision: ObservedRevision;
}

/** Serializes each reply once for all clients that request it. */
export interface MapCache {
  /** The whole network. With `since`, it lists the peers removed since then, as far as recorded. */
  whole(request: MapRead, since?: Revision | null): Promise<MapText>;
  /** The changes since `base`; null if they are no longer recorded. */
  delta(request: MapRead, base: Revision): Promise<MapText | null>;
}

const maxTextBytes = 8 * 1024 * 1024;
const maxNetworkBytes = 32 * 1024 * 1024;
const noDelta: MapText = { revision: { revision: 0, nonce: '' }, base: null, bytes: Buffer.alloc(0) };
const DeltaReply = reply(NetworkDelta);

export function createMapCache(db: Db): MapCache {
  const texts = new TextCache<MapText>(maxTextBytes);
  const serialize = createSerializer(db);
  return {
    whole: async ({ id, revision: requested }, since = null) => {
      const text = await texts.get(id, requested, 'whole', (revision) => serialize({ id, revision }));
      if (since === null) return text;
      const removed = await listRemoved(db, id, since, text.revision);
      return removed.length === 0 ? text : { ...text, bytes: addRemoved(text.bytes, removed) };
    },
    delta: async ({ id, revision }, base) => {
      const text = await texts.get(id, revision, `since ${base.revision}-${base.nonce}`, async () => {
        const changes = await readDelta(db, id, base);
        if (!changes) return noDelta;
        const data = { ...changes.delta, base: formatETag(base) };
        const bytes = unpooledBuffer(JSON.stringify(z.encode(DeltaReply, { data })));
        return { revision: changes.at, base, bytes };
      });
      return text === noDelta ? null : text;
    },
  };
}

interface CachedNetwork extends CachedRevision {
  readonly network: SerializedNetwork;
}

/** Serializes whole networks. For a cached network it serializes only the changed peers. */
function createSerializer(db: Db): (request: MapRead) => Promise<MapText> {
  const cache = new LRUCache<number, CachedNetwork>({ maxSize: maxNetworkBytes });
  const lock = createKeyedMutex();
  return ({ id, revision }) =>
    lock(String(id), async () => {
      let cached = cache.get(id);
      if (!cached || !isFresh(cached, revision)) {
        // The update is in place, so after an error half-way the whole network is read again.
        cache.delete(id);
        cached = await updateNetwork(db, id, cached);
        // The requested network stays in the cache, whatever its size.
        cache.set(id, cached, { size: Math.min(cached.network.size(), maxNetworkBytes) });
      }
      return { revision: cached.revision, base: null, bytes: cached.network.bytes() };
    });
}

async function updateNetwork(db: Db, id: number, cached: CachedNetwork | undefined): Promise<CachedNetwork> {
  const readAt = nextLogicalTime();
  const { base, at: revision, delta } = await readDeltaOrAll(db, id, cached?.revision ?? null);
  const { peers, removed, ...head } = delta;
  if (!cached || base === null) return { network: new SerializedNetwork(head, peers), revision, readAt };
  cached.network.update(head, peers, removed);
  return { network: cached.network, revision, readAt };
}

/** The texts of a network at its latest observed revision. */
interface NetworkTexts<Text> {
  readonly revision: ObservedRevision;
  readonly texts: Map<string, Promise<Text>>;
  readonly bytes: number;
}

/** Bytes of an entry in addition to its text. */
const overhead = 256;

/** Makes each text only once, also for concurrent requests. A new revision drops older texts. */
export class TextCache<Text extends { readonly bytes: Buffer }> {
  readonly #networks: LRUCache<number, NetworkTexts<Text>>;

  constructor(maxBytes: number) {
    this.#networks = new LRUCache({ maxSize: maxBytes, sizeCalculation: ({ bytes }) => bytes });
  }

  /** @param make makes the text `name` of this revision or a later one */
  get(
    id: number,
    observed: ObservedRevision,
    name: string,
    make: (revision: ObservedRevision) => Promise<Text>,
  ): Promise<Text> {
    const { revision, texts } = this.#latestOf(id, observed);
    const cached = texts.get(name);
    if (cached) return cached;
    const text = make(revision);
    texts.set(name, text);
    text.then(
      ({ bytes }) => this.#addBytes(id, texts, bytes.length + overhead),
      () => texts.delete(name),
    );
    return text;
  }

  #latestOf(id: number, observed: ObservedRevision): NetworkTexts<Text> {
    const cached = this.#networks.get(id);
    if (cached && isFresh({ revision: cached.revision, readAt: cached.revision.at }, observed)) return cached;
    const latest = { revision: observed, texts: new Map(), bytes: overhead };
    this.#networks.set(id, latest);
    return latest;
  }

  #addBytes(id: number, texts: NetworkTexts<Text>['texts'], bytes: number): void {
    const latest = this.#networks.peek(id);
    // The cache updates the size of an entry only when its value is set.
    if (latest?.texts === texts) this.#networks.set(id, { ...latest, bytes: latest.bytes + bytes });
  }
}
