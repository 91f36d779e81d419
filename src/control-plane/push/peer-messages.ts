import { mostMessages, mostProbed, type PeerMessage, type PeerMessageKind } from '../../contract/network.ts';
import type { PeerCaller } from '../domain/caller.ts';
import type { ControlPlaneStore } from '../store/database.ts';
import { insertMessages, listAddressees, takeMessages } from '../store/peers/peer-messages.ts';
import type { Db } from '../store/tables.ts';
import { transact } from '../store/transact.ts';

/** Milliseconds after which a message that its host has not fetched is void. */
const lifetimeMs = 15_000;

interface MessageContext extends Pick<ControlPlaneStore, 'db' | 'announce'> {
  readonly readTime: (db: Db) => Promise<Date>;
}

/** The messages for the caller of one request. */
export interface Inbox {
  /** Calls `end` when there is a message, or now if one waits. Returns the unsubscribe function. */
  subscribe(end: () => void): () => void;
  /** Takes the messages. No other request gets them. */
  take(): Promise<readonly PeerMessage[]>;
}

/** A message, and the peer that receives it. */
export type Addressed = readonly [peer: number, message: PeerMessage];

/**
 * Messages that end single hosts' waits for a map, delivered at most once. The database stores
 * them: any process sends, and the process that holds the host's request delivers.
 */
export class PeerMessages {
  readonly #context: MessageContext;
  /** The wait of each peer's latest request in this process. */
  readonly #waits = new Map<number, Wait>();
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

  /** Ends the local waits of a network's peers that have messages. */
  async deliver(network: number): Promise<void> {
    const { db } = this.#context;
    const since = new Date((await this.#context.readTime(db)).getTime() - lifetimeMs).toISOString();
    for (const { peer, kind } of await listAddressees(db, network, since)) {
      this.#mark(peer, kind);
      const wait = this.#waits.get(peer);
      if (wait?.kinds.includes(kind)) wait.end();
    }
    for (const peer of this.#addressees.keys()) this.#forgetOld(peer);
  }

  /**
   * Opens the inbox of a request, for a peer that accepts messages of these kinds. An earlier
   * request of the peer gets none from now on: its connection may be dead.
   */
  open({ peerId }: PeerCaller, kinds: readonly PeerMessageKind[]): Inbox {
    const earlier = this.#waits.get(peerId);
    if (earlier !== undefined) earlier.isOver = true;
    this.#waits.delete(peerId);
    const wait: Wait = { kinds, end: () => {}, isOver: false };
    return {
      subscribe: (end) => {
        if (this.#kindsFor(peerId, kinds).length > 0) end();
        wait.end = end;
        this.#waits.set(peerId, wait);
        return () => {
          if (this.#waits.get(peerId) === wait) this.#waits.delete(peerId);
        };
      },
      take: async () => {
        const due = this.#kindsFor(peerId, kinds);
        if (due.length === 0 || wait.isOver) return [];
        for (const kind of due) this.#addressees.get(peerId)?.delete(kind);
        const { db } = this.#context;
        const now = (await this.#context.readTime(db)).getTime();
        const since = new Date(now - lifetimeMs).toISOString();
        const taken = await takeMessages(db, peerId, due, { since, most: mostMessages });
        // Others may be left for the next request.
        if (taken.length === mostMessages) for (const kind of due) this.#mark(peerId, kind);
        return joinNamed(taken.map(({ message, at }) => shorten(message, now - at)));
      },
    };
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
  end: () => void;
  /** True after a later request of the peer. */
  isOver: boolean;
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
function joinNamed(messages: readonly PeerMessage[]): PeerMessage[] {
  const joined: PeerMessage[] = [];
  for (const message of messages) {
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
