import { isRenewed } from '../../core/health/peer-health.ts';
import { addressesOf } from '../../core/names/resolved-names.ts';
import type { Joined } from '../../store/state/state.ts';
import type { Evaluation } from '../reconcile/evaluate-network.ts';
import type { Pass } from '../reconcile/pass.ts';
import { namesOf, resolveNames } from '../reconcile/resolve-names.ts';
import { secondsNow, type Tools } from '../tools.ts';
import type { PassListener } from './pass-listener.ts';
import type { PendingUpdate } from './pending-update.ts';
import { TransitionLogger } from './transition-logger.ts';

/** Seconds after which a name is resolved again although its peers answer. */
const renewal = 600;

/** Resolves the names of a network again when there is a reason to. */
export class NameFollower implements PassListener {
  readonly #tools: Tools;
  /** Seconds between two queries for the same name, at least. */
  readonly #interval: number;
  readonly #update: PendingUpdate;
  readonly #transitions: TransitionLogger;
  /** When each name was last queried, in seconds of the monotonic clock. */
  readonly #queriedAt = new Map<string, number>();
  #isBusy = false;

  constructor(tools: Tools, link: string, interval: number, update: PendingUpdate) {
    this.#tools = tools;
    this.#interval = interval;
    this.#update = update;
    const messages = { begins: 'names could not be resolved', ends: 'names are resolved again' };
    this.#transitions = new TransitionLogger(tools.log, { interface: link }, messages);
  }

  /** In another network a name may have other addresses. */
  reset(): void {
    this.#queriedAt.clear();
  }

  /** Does not wait for the resolver: one that does not answer must not delay passes. */
  onPass({ evaluation }: Pass): void {
    if (evaluation !== null) void this.resolveDue(evaluation);
  }

  /** Resolves the names that are due, and adds the addresses to the update for the next pass if they changed. Never rejects. */
  async resolveDue(evaluation: Evaluation): Promise<void> {
    const due = this.#findDue(evaluation);
    if (due.size === 0 || this.#isBusy) return;
    this.#isBusy = true;
    try {
      for (const name of due) this.#queriedAt.set(name, this.#tools.monotonic());
      const resolved = await resolveNames(this.#tools, evaluation.state, due);
      this.#transitions.update(null);
      if (resolved !== evaluation.state.resolved) this.#update.addResolved(resolved);
    } catch (error) {
      this.#transitions.update(error);
    } finally {
      this.#isBusy = false;
    }
  }

  /** A name whose peers had a recent handshake is due late: their endpoints are in use and right. */
  #findDue({ state, actual }: Evaluation): Set<string> {
    const now = secondsNow(this.#tools);
    const quiet = namesOfQuietPeers(state, (publicKey) => {
      const peer = actual.device?.peers.find((each) => each.publicKey === publicKey);
      return peer !== undefined && isRenewed(peer.latestHandshake, now);
    });
    const names = namesOf(state);
    const isUsed = new Set(names);
    for (const name of this.#queriedAt.keys()) if (!isUsed.has(name)) this.#queriedAt.delete(name);
    const due = names.filter((name) => {
      const pause = quiet.has(name) || addressesOf(name, state.resolved).length === 0 ? this.#interval : renewal;
      const queriedAt = this.#queriedAt.get(name);
      return queriedAt === undefined || this.#tools.monotonic() - queriedAt >= pause;
    });
    return new Set(due);
  }
}

function namesOfQuietPeers({ membership }: Joined, isAnswering: (publicKey: string) => boolean): Set<string> {
  return new Set(
    membership.map.peers
      .filter((peer) => peer.endpoint !== null && !isAnswering(peer.publicKey))
      .map((peer) => peer.endpoint?.host ?? ''),
  );
}
