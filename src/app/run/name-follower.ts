import { isRenewed } from '../../core/health/peer-health.ts';
import { addressesOf, type Resolved, withFirst, withLast } from '../../core/names/resolved-names.ts';
import type { Address } from '../../core/net/cidr.ts';
import type { Joined } from '../../store/state/state.ts';
import type { Evaluation } from '../reconcile/evaluate-network.ts';
import { isReachable } from '../reconcile/find-unreachable.ts';
import { namesOf, resolveNames } from '../reconcile/names/resolve-names.ts';
import type { Pass } from '../reconcile/pass.ts';
import { secondsNow, type Tools } from '../tools.ts';
import { AddressTrials, type NameUse } from './address-trials.ts';
import type { PassListener } from './pass-listener.ts';
import type { PendingUpdate } from './pending-update.ts';
import { TransitionLogger } from './transition-logger.ts';

/** Seconds until a name is resolved again although its peers answer. */
const renewal = 600;

/** Resolves a network's names again when needed, and chooses among their addresses. */
export class NameFollower implements PassListener {
  readonly #tools: Tools;
  readonly #link: string;
  /** The shortest time in seconds between two queries for the same name. */
  readonly #interval: number;
  readonly #update: PendingUpdate;
  readonly #transitions: TransitionLogger;
  /** In seconds of the monotonic clock. */
  readonly #queriedAt = new Map<string, number>();
  readonly #trials: AddressTrials;
  /** Names that were not resolved since this host may have moved; null for all. */
  #unsorted: Set<string> | null = new Set();
  readonly #answers = new Map<string, readonly Address[]>();
  #isBusy = false;

  constructor(tools: Tools, link: string, interval: number, update: PendingUpdate) {
    this.#tools = tools;
    this.#link = link;
    this.#trials = new AddressTrials(tools);
    this.#interval = interval;
    this.#update = update;
    const messages = { begins: 'names could not be resolved', ends: 'names are resolved again' };
    this.#transitions = new TransitionLogger(tools.log, { interface: link }, messages);
  }

  /** Another network may have other addresses for a name. */
  reset(): void {
    this.#queriedAt.clear();
    this.#trials.reset();
    this.#unsorted = null;
  }

  /** Does not wait for the resolver, which must not delay passes. */
  onPass({ evaluation }: Pass): void {
    if (evaluation !== null) void this.resolveDue(evaluation);
  }

  /** Resolves due names and replaces silent addresses, for the next pass. Never rejects. */
  async resolveDue(evaluation: Evaluation): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      const { state } = evaluation;
      const { uses, lookIn } = this.#trials.look(evaluation, this.#answers);
      if (lookIn !== null) this.#update.trigger(lookIn * 1000);
      const { due, quiet } = this.#findDue(evaluation);
      for (const name of due) this.#queriedAt.set(name, this.#tools.monotonic());
      const sorted = this.#takeUnsorted(due, quiet, state);
      const onAnswer = (name: string, addresses: readonly Address[]) => void this.#answers.set(name, addresses);
      const options = { some: due, sorted, onAnswer };
      const answered = due.size === 0 ? state.resolved : await resolveNames(this.#tools, state, options);
      this.#transitions.update(null);
      const resolved = await this.#choose(answered, uses, state);
      this.#update.set({ silent: this.#trials.silent });
      if (resolved !== state.resolved) this.#update.addResolved(resolved);
    } catch (error) {
      this.#transitions.update(error);
    } finally {
      this.#isBusy = false;
    }
  }

  /** A name whose peers had a recent handshake is due late: their endpoints work. */
  #findDue({ state, actual }: Evaluation): { readonly due: Set<string>; readonly quiet: ReadonlySet<string> } {
    const now = secondsNow(this.#tools);
    const quiet = namesOfQuietPeers(state, (publicKey) => {
      const peer = actual.device?.peers.find((each) => each.publicKey === publicKey);
      return peer !== undefined && isRenewed(peer.latestHandshake, now);
    });
    const names = namesOf(state);
    const isUsed = new Set(names);
    for (const name of this.#queriedAt.keys()) if (!isUsed.has(name)) this.#forget(name);
    const due = names.filter((name) => {
      const pause = quiet.has(name) || addressesOf(name, state.resolved).length === 0 ? this.#interval : renewal;
      const queriedAt = this.#queriedAt.get(name);
      return queriedAt === undefined || this.#tools.monotonic() - queriedAt >= pause;
    });
    return { due: new Set(due), quiet };
  }

  #forget(name: string): void {
    this.#queriedAt.delete(name);
    this.#answers.delete(name);
  }

  /**
   * Returns the quiet names that are resolved for the first time since this host may have moved.
   * They take the resolver's order, which is for the present network.
   */
  #takeUnsorted(due: ReadonlySet<string>, quiet: ReadonlySet<string>, state: Joined): ReadonlySet<string> {
    this.#unsorted ??= new Set(namesOf(state));
    const unsorted = this.#unsorted;
    const taken = [...due].filter((name) => unsorted.delete(name));
    return new Set(taken.filter((name) => quiet.has(name)));
  }

  /** Puts the address first at which a name's peers answer, or the next one after silence. */
  async #choose(resolved: Resolved, uses: readonly NameUse[], state: Joined): Promise<Resolved> {
    const chosen: Record<string, readonly Address[]> = {};
    for (const { name, heardAt, silentAt, candidates } of uses) {
      const addresses = addressesOf(name, resolved);
      const next = silentAt === null ? null : await this.#findNext(silentAt, candidates, state);
      if (silentAt !== null) this.#trials.fail(name, silentAt, next);
      if (silentAt !== null && next !== null) {
        const facts = { interface: this.#link, name, address: silentAt, next };
        this.#tools.log.info(facts, 'no answer at an address of a name; using the next one');
      }
      const ordered =
        silentAt !== null && next !== null
          ? withLast(addresses, silentAt, next)
          : heardAt === null
            ? addresses
            : withFirst(addresses, heardAt);
      if (ordered !== addresses) chosen[name] = ordered;
    }
    return Object.keys(chosen).length === 0 ? resolved : { ...resolved, ...chosen };
  }

  /** Returns the address to use after a silent one; null if no other has a route. */
  async #findNext(silent: Address, candidates: readonly Address[], state: Joined): Promise<Address | null> {
    const at = candidates.indexOf(silent);
    for (const address of [...candidates.slice(at + 1), ...candidates.slice(0, Math.max(at, 0))]) {
      if (await isReachable(this.#tools.host, state, address)) return address;
    }
    return null;
  }
}

function namesOfQuietPeers({ membership }: Joined, isAnswering: (publicKey: string) => boolean): Set<string> {
  return new Set(
    membership.map.peers
      .filter((peer) => peer.endpoint !== null && !isAnswering(peer.publicKey))
      .map((peer) => peer.endpoint?.host ?? ''),
  );
}
