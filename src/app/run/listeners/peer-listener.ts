import type { PublicKey } from '../../../core/crypto/keys.ts';
import { isFresh } from '../../../core/health/peer-health.ts';
import { isUnanswered, type PeerActivity, trackActivity } from '../../../core/health/report/peer-activity.ts';
import { isSilent } from '../../../core/health/traffic.ts';
import { isUnansweredYet } from '../../../core/health/unanswered.ts';
import type { Pass } from '../../reconcile/pass.ts';
import { secondsNow, type Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';

/** Detects over several passes which peers do not answer, and notes them. */
export class PeerListener implements PassListener {
  readonly #tools: Pick<Tools, 'store' | 'now' | 'monotonic'>;
  readonly #link: string;
  #activity: ReadonlyMap<PublicKey, PeerActivity> = new Map();
  #silent = '{}';

  constructor(tools: Pick<Tools, 'store' | 'now' | 'monotonic'>, link: string) {
    this.#tools = tools;
    this.#link = link;
  }

  /**
   * Skips peers with neither keepalives nor a session, as such a host may be off, except while
   * handshakes are sent to them.
   */
  async onPass({ evaluation }: Pass): Promise<void> {
    if (evaluation === null) return;
    const at = this.#tools.monotonic();
    const peers = evaluation.actual.device?.peers ?? [];
    this.#activity = trackActivity(this.#activity, peers, at);
    const silent = peers.filter((peer) => {
      const { publicKey, latestHandshake, keepalive } = peer;
      const activity = this.#activity.get(publicKey);
      if (activity === undefined) return false;
      if (latestHandshake === null) return isUnansweredYet(peer) && isUnanswered(activity, at);
      const hasSession = isFresh(latestHandshake, secondsNow(this.#tools));
      return (hasSession || keepalive !== null) && isSilent(activity.traffic, at);
    });
    const found = Object.fromEntries(silent.map((peer) => [peer.publicKey, peer.rxBytes]));
    if (JSON.stringify(found) === this.#silent) return;
    this.#silent = JSON.stringify(found);
    await this.#tools.store.amendNotes(this.#link, { silent: found });
  }
}
