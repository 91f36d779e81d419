import { mostMessages, type PeerMessage, type PeerMessageKind } from '../../contract/network.ts';
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

/**
 * Messages that end single hosts' waits for a map, delivered at most once. The database stores
 * them: any process sends, and the process that holds the host's request delivers.
 */
export class PeerMessages {
  readonly #context: MessageContext;
  /** The callbacks that end the waits of each peer in this process. */
  readonly #waits = new Map<number, Set<() => void>>();
  /** Peers that may have messages, and until when, by this process's clock. */
  readonly #addressees = new Map<number, number>();

  constructor(context: MessageContext) {
    this.#context = context;
  }

  async send(network: number, messages: ReadonlyMap<number, PeerMessage>): Promise<void> {
    if (messages.size === 0) return;
    const { db, announce } = this.#context;
    await transact(db, async (transaction) => {
      const at = await this.#context.readTime(transaction);
      const instants = { at: at.toISOString(), since: new Date(at.getTime() - lifetimeMs).toISOString() };
      await insertMessages(transaction, network, messages, instants);
      await announce(transaction, network, 'messages');
    });
    await this.deliver(network);
  }

  /** Ends the local waits of a network's peers that have messages. */
  async deliver(network: number): Promise<void> {
    const { db } = this.#context;
    const since = new Date((await this.#context.readTime(db)).getTime() - lifetimeMs).toISOString();
    const now = performance.now();
    for (const peer of await listAddressees(db, network, since)) {
      this.#addressees.set(peer, now + lifetimeMs);
      for (const end of this.#waits.get(peer) ?? []) end();
    }
    for (const [peer, until] of this.#addressees) if (until < now) this.#addressees.delete(peer);
  }

  /** Opens the inbox of a request, for a peer that accepts messages of these kinds. */
  open({ peerId }: PeerCaller, kinds: readonly PeerMessageKind[]): Inbox {
    return {
      subscribe: (end) => {
        if (this.#isAddressee(peerId)) end();
        const ends = this.#waits.get(peerId) ?? new Set();
        this.#waits.set(peerId, ends.add(end));
        return () => {
          ends.delete(end);
          if (ends.size === 0 && this.#waits.get(peerId) === ends) this.#waits.delete(peerId);
        };
      },
      take: async () => {
        if (!this.#isAddressee(peerId)) return [];
        this.#addressees.delete(peerId);
        const { db } = this.#context;
        const since = new Date((await this.#context.readTime(db)).getTime() - lifetimeMs).toISOString();
        return (await takeMessages(db, peerId, kinds, since)).slice(-mostMessages);
      },
    };
  }

  #isAddressee(peer: number): boolean {
    return (this.#addressees.get(peer) ?? 0) > performance.now();
  }
}
