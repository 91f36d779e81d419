import * as z from 'zod';
import { type NetworkDelta, NetworkHead } from '../../contract/network.ts';
import { Peer } from '../../contract/peer.ts';
import { ChangedMapRules } from '../../contract/rules.ts';
import type { MessageBatch } from './peer-messages.ts';

/** The number of peers that are serialized again when one of them changes. */
const peersPerChunk = 128;

/** The head of a map. In a closed network it may lack the list of rules, if that is unchanged. */
type ChangedHead = Omit<NetworkHead, 'rules'> & Pick<NetworkDelta, 'rules'>;

interface Chunk {
  readonly peers: Map<number, string>;
  /** Null after a change of the peers. */
  bytes: Buffer | null;
}

/**
 * The JSON `{"data":…}`, peers in the order in which they were added. An update encodes only
 * changed peers, and joins only their chunks again.
 */
export class SerializedNetwork {
  readonly #chunks: Chunk[] = [];
  readonly #chunkOf = new Map<number, Chunk>();
  #head = '';
  /** The list of rules, which a closed network keeps until it gets another. */
  #rules = '';
  #bytes: Buffer | null = null;

  constructor(head: ChangedHead, peers: readonly Peer[]) {
    this.update(head, peers, []);
  }

  /** @param peers new and changed peers */
  update(head: ChangedHead, peers: readonly Peer[], removed: readonly number[]): void {
    const texts = peers.map((peer) => [peer.id, JSON.stringify(z.encode(Peer, peer))] as const);
    this.#setHead(head);
    this.#bytes = null;
    for (const [id, text] of texts) this.#set(id, text);
    for (const id of removed) this.#remove(id);
  }

  bytes(): Buffer {
    this.#bytes ??= this.#serialize();
    return this.#bytes;
  }

  /** Bytes of memory: the whole text, the texts of its chunks, and the texts of its peers. */
  size(): number {
    return 3 * this.bytes().length;
  }

  #serialize(): Buffer {
    const chunks = this.#chunks.filter(({ peers }) => peers.size > 0).map(bytesOf);
    const comma = Buffer.from(',');
    const peers = chunks.flatMap((chunk, index) => (index === 0 ? [chunk] : [comma, chunk]));
    return Buffer.concat([Buffer.from(`{"data":${this.#head},"peers":[`), ...peers, Buffer.from(`]${end}`)]);
  }

  /** Encodes the rules only if they changed: they may be larger than the rest of the head. */
  #setHead({ rules, ...head }: ChangedHead): void {
    const text = JSON.stringify(z.encode(NetworkHead, head)).slice(0, -1);
    if (rules?.rules !== undefined) this.#rules = JSON.stringify(z.encode(ChangedMapRules, rules).rules);
    const { rules: _, ...mode } = rules ?? {};
    const closed = `,"rules":${JSON.stringify(mode).slice(0, -1)},"rules":${this.#rules}}`;
    this.#head = rules === undefined ? text : text + closed;
  }

  #set(id: number, text: string): void {
    let chunk = this.#chunkOf.get(id) ?? this.#chunks.at(-1);
    if (chunk === undefined || (chunk.peers.size >= peersPerChunk && !chunk.peers.has(id))) {
      chunk = { peers: new Map(), bytes: null };
      this.#chunks.push(chunk);
    }
    chunk.peers.set(id, text);
    chunk.bytes = null;
    this.#chunkOf.set(id, chunk);
  }

  #remove(id: number): void {
    const chunk = this.#chunkOf.get(id);
    if (chunk === undefined) return;
    chunk.peers.delete(id);
    chunk.bytes = null;
    this.#chunkOf.delete(id);
  }
}

/** The brackets that end the network and the envelope. */
const end = '}}';

export function addRemoved(bytes: Buffer, removed: readonly number[]): Buffer {
  return addField(bytes, 'removed', removed);
}

export function addMessages(bytes: Buffer, { messages, receipt }: MessageBatch): Buffer {
  return messages.length === 0 ? bytes : addField(addField(bytes, 'messages', messages), 'receipt', receipt);
}

function addField(bytes: Buffer, name: string, value: unknown): Buffer {
  return Buffer.concat([bytes.subarray(0, -end.length), Buffer.from(`,"${name}":${JSON.stringify(value)}${end}`)]);
}

function bytesOf(chunk: Chunk): Buffer {
  chunk.bytes ??= unpooledBuffer([...chunk.peers.values()].join(','));
  return chunk.bytes;
}

/** For caches: a short text of Buffer.from() would keep alive its shared pool of 64 KiB. */
export function unpooledBuffer(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}
