import {
  mostMessages,
  mostProbed,
  type PeerMessage,
  type PeerMessageKind,
  peerMessageKinds,
} from '../../contract/network.ts';
import type { PeerCaller } from '../domain/caller.ts';
import type { ControlPlaneStore } from '../store/database.ts';
import { deleteMessages, insertMessages, listAddressees, listMessages } from '../store/peers/peer-messages.ts';
import type { Db } from '../store/tables.ts';
import { transact } from '../store/transact.ts';

/** Milliseconds after which a message that its host has not fetched is void. */
const lifetimeMs = 15_000;

interface MessageContext extends Pick<ControlPlaneStore, 'db' | 'announce'> {
  readonly readTime: (db: Db) => Promise<Date>;
}

/** Messages for one host, and what its next request states to have received them. */
export interface MessageBatch {
  readonly messages: readonly PeerMessage[];
  /** Null without messages. */
  readonly receipt: string | null;
}

/** The messages for the caller of one request. */
export interface Inbox {
  /** True if messages that are not sent come again. */
  readonly hasReceipts: boolean;
  /** Calls `end` when there is a message, or now if one waits. Returns the unsubscribe function. */
  subscribe(end: () => void): () => void;
  /** Reads the messages that wait. A host without receipts gets them once. */
  read(): Promise<MessageBatch>;
}

export interface InboxOptions {
  /** The kinds of messages that the host takes. */
  readonly kinds: readonly PeerMessageKind[];
  /** True if the host states which messages it received. */
  readonly hasReceipts: boolean;
}

/** A message, and the peer that receives it. */
export type Addressed = readonly [peer: number, message: PeerMessage];

/**
 * Messages that end single hosts' waits for a map. The database stores them until their host states
 * that it received them: a reply on a connection that died unnoticed loses none. Any process sends,
 * and each process that holds a request of the host replies.
 */
export class PeerMessages {
  readonly #context: MessageContext;
  /** The waits of each peer's requests in this process. */
  readonly #waits = new Map<number, Set<Wait>>();
  /** The kinds of messages that a peer may have, and until when, by this process's clock. */
  readonly #addressees = new Map<number, Map<PeerMessageKind, number>>();

  constructor(context: MessageContext) {
    this.#context = context;
  }

  async send(network: number, messages: readonly Addressed[]): Promise<void> {
    if (messages.length === 0) return;
    await transact(this.#context.db, (transaction) => this.store(transaction, network, messages));
    await this.deliver(network);
  }

  /** Stores messages in the transaction of a change. {@link deliver} follows its commit. */
  async store(transaction: Db, network: number, messages: readonly Addressed[]): Promise<void> {
    if (messages.length === 0) return;
    const at = await this.#context.readTime(transaction);
    const instants = { at: at.toISOString(), since: new Date(at.getTime() - lifetimeMs).toISOString() };
    await insertMessages(transaction, network, messages, instants);
    await this.#context.announce(transaction, network, 'messages');
  }

  /** Finds what waits since before this process began. */
  async restore(): Promise<void> {
    const { db } = this.#context;
    const since = new Date((await this.#context.readTime(db)).getTime() - lifetimeMs).toISOString();
    for (const { peer, kind } of await listAddressees(db, null, since)) this.#mark(peer, kind);
  }

  /** Ends the local waits of a network's peers that have messages. */
  async deliver(network: number): Promise<void> {
    const { db } = this.#context;
    const since = new Date((await this.#context.readTime(db)).getTime() - lifetimeMs).toISOString();
    for (const { peer, kind } of await listAddressees(db, network, since)) {
      this.#mark(peer, kind);
      for (const wait of this.#waits.get(peer) ?? []) if (wait.kinds.includes(kind)) wait.end();
    }
    for (const peer of this.#addressees.keys()) this.#forgetOld(peer);
  }

  /** Deletes the messages of a receipt: their host received them. Ignores a malformed receipt. */
  async acknowledge({ peerId }: PeerCaller, receipt: string): Promise<void> {
    const ids = readReceipt(receipt);
    if (ids.length === 0) return;
    await deleteMessages(this.#context.db, peerId, ids);
    await this.#list(peerId, this.#kindsFor(peerId, peerMessageKinds));
  }

  open(caller: PeerCaller, { kinds, hasReceipts }: InboxOptions): Inbox {
    const { peerId } = caller;
    return {
      hasReceipts,
      subscribe: (end) => {
        if (this.#kindsFor(peerId, kinds).length > 0) end();
        const wait = { kinds, end };
        const waits = this.#waits.get(peerId) ?? new Set();
        this.#waits.set(peerId, waits.add(wait));
        return () => {
          waits.delete(wait);
          if (waits.size === 0 && this.#waits.get(peerId) === waits) this.#waits.delete(peerId);
        };
      },
      read: async () => {
        const due = this.#kindsFor(peerId, kinds);
        const found = due.length > 0 ? await this.#list(peerId, due) : [];
        if (found.length === 0) return nothing;
        const receipt = found.map(({ id }) => id).join('.');
        if (!hasReceipts) await this.acknowledge(caller, receipt);
        return { messages: joinNamed(found), receipt };
      },
    };
  }

  /** The oldest messages, as of now. Forgets the marks of kinds without a message. */
  async #list(peer: number, kinds: readonly PeerMessageKind[]): Promise<(PeerMessage & { readonly id: number })[]> {
    if (kinds.length === 0) return [];
    const { db, readTime } = this.#context;
    const marks = this.#addressees.get(peer);
    const before = new Map(marks);
    const now = (await readTime(db)).getTime();
    const since = new Date(now - lifetimeMs).toISOString();
    const found = await listMessages(db, peer, kinds, { since, most: mostMessages });
    const isGone = (kind: PeerMessageKind) =>
      found.length < mostMessages && !found.some(({ message }) => message.kind === kind);
    // One that came meanwhile has another mark.
    for (const kind of kinds) if (isGone(kind) && marks?.get(kind) === before.get(kind)) marks?.delete(kind);
    return found.map(({ id, message, at }) => ({ id, ...shorten(message, now - at) }));
  }

  #mark(peer: number, kind: PeerMessageKind): void {
    const marks = this.#addressees.get(peer) ?? new Map();
    this.#addressees.set(peer, marks.set(kind, performance.now() + lifetimeMs));
  }

  #kindsFor(peer: number, kinds: readonly PeerMessageKind[]): readonly PeerMessageKind[] {
    this.#forgetOld(peer);
    return kinds.filter((kind) => this.#addressees.get(peer)?.has(kind));
  }

  #forgetOld(peer: number): void {
    const marks = this.#addressees.get(peer);
    const now = performance.now();
    for (const [kind, until] of marks ?? []) if (until < now) marks?.delete(kind);
    if (marks?.size === 0) this.#addressees.delete(peer);
  }
}

interface Wait {
  readonly kinds: readonly PeerMessageKind[];
  readonly end: () => void;
}

export const nothing: MessageBatch = { messages: [], receipt: null };

/** The ids in a receipt, which the host returns as it is. */
function readReceipt(receipt: string): number[] {
  const ids = receipt.split('.').filter((part) => /^\d{1,15}$/.test(part));
  return ids.slice(0, mostMessages).map(Number);
}

/** A message that names a moment counts from its delivery. */
function shorten(message: PeerMessage, waitedMs: number): PeerMessage {
  const left = (ms: number) => Math.max(0, ms - Math.max(0, waitedMs));
  const { kind, data } = message;
  if (kind === 'try') return { kind, data: { ...data, start_in_ms: left(data.start_in_ms) } };
  if (kind === 'switch') return { kind, data: { ...data, switch_in_ms: left(data.switch_in_ms) } };
  return message;
}

/** Joins messages that only name peers. A relay replies once to several attempts. */
function joinNamed(found: readonly PeerMessage[]): PeerMessage[] {
  const joined: PeerMessage[] = [];
  for (const { kind, data } of found) {
    const message = { kind, data } as PeerMessage;
    const at = joined.findLastIndex(({ kind }) => kind === message.kind);
    const before = joined[at];
    const peers = [...new Set([...namedIn(before), ...namedIn(message)])];
    if (before === undefined || namedIn(message).length === 0 || peers.length > mostProbed) joined.push(message);
    else joined[at] = { kind: message.kind, data: { peers } } as PeerMessage;
  }
  return joined;
}

function namedIn(message: PeerMessage | undefined): readonly number[] {
  return message !== undefined && 'peers' in message.data ? message.data.peers : [];
}
