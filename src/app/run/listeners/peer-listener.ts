import type { PublicKey } from '../../../core/crypto/keys.ts';
import { isFresh } from '../../../core/health/peer-health.ts';
import { isSilent, type Traffic, trackTraffic } from '../../../core/health/traffic.ts';
import type { Pass } from '../../reconcile/pass.ts';
import { secondsNow, type Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';

/** Detects over several passes which peers do not answer, and writes them to the notes. */
export class PeerListener implements PassListener {
  readonly #tools: Tools;
  readonly #link: string;
  #traffic: ReadonlyMap<PublicKey, Traffic> = new Map();
  #silent = '{}';

  constructor(tools: Tools, link: string) {
    this.#tools = tools;
    this.#link = link;
  }

  /** Skips peers with neither keepalives nor a session: such a host may be off. */
  async onPass({ evaluation }: Pass): Promise<void> {
    if (evaluation === null) return;
    const at = this.#tools.monotonic();
    const peers = evaluation.actual.device?.peers ?? [];
    this.#traffic = new Map(
      peers.map((peer) => [peer.publicKey, trackTraffic(this.#traffic.get(peer.publicKey), peer, at)]),
    );
    const silent = peers.filter(({ publicKey, latestHandshake, keepalive }) => {
      const traffic = this.#traffic.get(publicKey);
      const hasSession = isFresh(latestHandshake, secondsNow(this.#tools));
      const isExpected = hasSession || (keepalive !== null && latestHandshake !== null);
      return isExpected && traffic && isSilent(traffic, at);
    });
    const found = Object.fromEntries(silent.map((peer) => [peer.publicKey, peer.rxBytes]));
    if (JSON.stringify(found) === this.#silent) return;
    this.#silent = JSON.stringify(found);
    await this.#tools.store.amendNotes(this.#link, { silent: found });
  }
}
