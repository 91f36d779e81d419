import * as z from 'zod';
import { NetworkSummary } from '../contract/network.ts';
import { Peer } from '../contract/peer.ts';
import { ownBytes } from './own-bytes.ts';

/** Peers whose text is made anew when one of them changes. */
const together = 128;

interface Part {
  readonly peers: Map<number, string>;
  /** Null when it is not as the peers are. */
  bytes: Buffer | null;
}

/**
 * The text of a network as a reply has it, `{"data":…}`, which is brought up to date by what changed: a change costs the writing
 * of its peers and the copying of all others, in the order in which they came.
 */
export class WrittenNetwork {
  readonly #parts: Part[] = [];
  readonly #partOf = new Map<number, Part>();
  #summary: NetworkSummary;
  #bytes: Buffer | null = null;

  constructor(summary: NetworkSummary, peers: readonly Peer[]) {
    this.#summary = summary;
    this.update(summary, peers, []);
  }

  /** Takes over what is different: the summary, peers that are new or not as they were, and the ids of those that are no more. */
  update(summary: NetworkSummary, peers: readonly Peer[], removed: readonly number[]): void {
    const texts = peers.map((peer) => [peer.id, JSON.stringify(z.encode(Peer, peer))] as const);
    this.#summary = summary;
    this.#bytes = null;
    for (const [id, text] of texts) this.#set(id, text);
    for (const id of removed) this.#remove(id);
  }

  bytes(): Buffer {
    this.#bytes ??= this.#write();
    return this.#bytes;
  }

  /** Bytes of memory, of a network that was written: the whole text, the texts of its parts, and those of its peers. */
  size(): number {
    return 3 * this.bytes().length;
  }

  #write(): Buffer {
    const summary = JSON.stringify(z.encode(NetworkSummary, this.#summary));
    const parts = this.#parts.filter(({ peers }) => peers.size > 0).map(bytesOf);
    const between = Buffer.from(',');
    const listed = parts.flatMap((part, index) => (index === 0 ? [part] : [between, part]));
    return Buffer.concat([Buffer.from(`{"data":${summary.slice(0, -1)},"peers":[`), ...listed, Buffer.from(']}}')]);
  }

  #set(id: number, text: string): void {
    let part = this.#partOf.get(id) ?? this.#parts.at(-1);
    if (part === undefined || (part.peers.size >= together && !part.peers.has(id))) {
      part = { peers: new Map(), bytes: null };
      this.#parts.push(part);
    }
    part.peers.set(id, text);
    part.bytes = null;
    this.#partOf.set(id, part);
  }

  #remove(id: number): void {
    const part = this.#partOf.get(id);
    if (part === undefined) return;
    part.peers.delete(id);
    part.bytes = null;
    this.#partOf.delete(id);
  }
}

function bytesOf(part: Part): Buffer {
  part.bytes ??= ownBytes([...part.peers.values()].join(','));
  return part.bytes;
}
