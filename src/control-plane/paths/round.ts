import { randomInt } from 'node:crypto';
import type { PeerMessage } from '../../contract/network.ts';
import type { Addressed } from '../push/peer-messages.ts';
import type { StoredNetwork } from '../store/networks.ts';
import { listPairsOf, prunePaths, type StoredPair, savePair } from '../store/peers/peer-pairs.ts';
import type { Db } from '../store/tables.ts';
import { isUnderWay, type Pair } from './pair.ts';

/** The longest time in which starts toward an address count. */
export const startsMs = 60_000;
const statementsMs = 30 * 60_000;
const directMs = 30 * 24 * 3600_000;

/** An attempt whose endpoints are gathered. */
export interface Gathering {
  readonly network: number;
  readonly organization: number;
  readonly a: number;
  readonly b: number;
  readonly attempt: number;
}

/** The result of a round. The transaction stores the messages too. */
export interface Outcome {
  readonly messages: readonly Addressed[];
  readonly begun: readonly Gathering[];
  /** True if the health of the network shows a change. */
  readonly isShown: boolean;
}

interface RoundOptions {
  readonly db: Db;
  readonly network: StoredNetwork;
  readonly organization: number;
  readonly now: number;
  /** The sockets of the control plane itself. */
  readonly ownSockets: ReadonlySet<string>;
}

/**
 * Changes of the pairs of one network, in a transaction that has locked the network: rounds of one
 * network run one after another, in all processes.
 */
export class Round {
  readonly db: Db;
  readonly network: StoredNetwork;
  readonly now: number;
  readonly ownSockets: ReadonlySet<string>;
  readonly #organization: number;
  readonly #pairs = new Map<string, Pair>();
  readonly #changed = new Set<string>();
  readonly #messages: Addressed[] = [];
  readonly #begun: Gathering[] = [];
  #isShown = false;

  constructor({ db, network, organization, now, ownSockets }: RoundOptions) {
    this.db = db;
    this.network = network;
    this.now = now;
    this.ownSockets = ownSockets;
    this.#organization = organization;
  }

  /** For the jitter of a backoff. */
  random(): number {
    return Math.random();
  }

  /** The instant `ms` milliseconds ago, as the store has it. */
  ago(ms: number): string {
    return new Date(this.now - ms).toISOString();
  }

  async prune(): Promise<void> {
    const ages = { starts: this.ago(startsMs), statements: this.ago(statementsMs), direct: this.ago(directMs) };
    await prunePaths(this.db, this.network.id, ages);
  }

  /** Loads all pairs of these peers. */
  async load(peers: readonly number[]): Promise<void> {
    for (const row of await listPairsOf(this.db, this.network.id, peers)) {
      const pair = readPair(row);
      if (!this.#pairs.has(keyOf(pair))) this.#pairs.set(keyOf(pair), pair);
    }
  }

  pairOf(one: number, other: number): Pair | undefined {
    return this.#pairs.get(keyOf({ a: Math.min(one, other), b: Math.max(one, other) }));
  }

  /** All loaded pairs. */
  get pairs(): readonly Pair[] {
    return [...this.#pairs.values()];
  }

  /** The loaded pairs of a peer. */
  pairsOf(peer: number): readonly Pair[] {
    return this.pairs.filter(({ a, b }) => a === peer || b === peer);
  }

  set(pair: Pair): void {
    const before = this.pairOf(pair.a, pair.b);
    const isSettled = pair.state === 'direct' || pair.state === 'resting';
    if (isSettled && (before?.state !== pair.state || before.data.tried !== pair.data.tried)) this.#isShown = true;
    this.#pairs.set(keyOf(pair), pair);
    this.#changed.add(keyOf(pair));
  }

  /** Notes that the endpoints of a new attempt are gathered. */
  begin(pair: Pair): void {
    const { a, b, attempt } = pair;
    this.set(pair);
    this.#begun.push({ network: this.network.id, organization: this.#organization, a, b, attempt });
  }

  send(peer: number, message: PeerMessage): void {
    this.#messages.push([peer, message]);
  }

  /**
   * How many attempts of a peer are under way, how many of these another peer began, and how many
   * pairs try or have a direct path that began recently.
   */
  countOf(peer: number): { readonly underWay: number; readonly ofOthers: number; readonly used: number } {
    const pairs = this.pairsOf(peer);
    const underWay = pairs.filter((pair) => isUnderWay(pair, this.now));
    const ofOthers = underWay.filter(({ data }) => data.by !== peer);
    const direct = pairs.filter(({ state, at }) => state === 'direct' && this.now - at < statementsMs);
    return { underWay: underWay.length, ofOthers: ofOthers.length, used: underWay.length + direct.length };
  }

  async close(): Promise<Outcome> {
    for (const key of [...this.#changed].toSorted()) {
      const pair = this.#pairs.get(key);
      if (pair) await savePair(this.db, toStored(pair, this.network.id));
    }
    return { messages: this.#messages, begun: this.#begun, isShown: this.#isShown };
  }
}

/** The number of the first attempt. After the row of a pair is gone, no late reply fits. */
export function firstAttempt(): number {
  return randomInt(1, 2 ** 30);
}

function keyOf({ a, b }: Pick<Pair, 'a' | 'b'>): string {
  return `${a} ${b}`;
}

export function readPair({ started_at, at, next_at, data, network_id: _, ...row }: StoredPair): Pair {
  const instants = { startedAt: Date.parse(started_at), at: Date.parse(at), nextAt: Date.parse(next_at) };
  return { ...row, ...instants, data: JSON.parse(data) };
}

function toStored({ startedAt, at, nextAt, data, ...pair }: Pair, network: number): StoredPair {
  const instant = (ms: number) => new Date(ms).toISOString();
  const instants = { started_at: instant(startedAt), at: instant(at), next_at: instant(nextAt) };
  return { ...pair, ...instants, network_id: network, data: JSON.stringify(data) };
}
