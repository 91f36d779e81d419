import { isFresh } from '../../core/health.ts';
import type { PublicKey } from '../../core/keys.ts';
import { followTraffic, isSilent, type Traffic } from '../../core/traffic.ts';
import type { Survey } from '../survey.ts';
import { secondsNow, type Tools } from '../tools.ts';

/** Follows from pass to pass whether the peers answer, which one look at the host cannot tell. */
export class PeerWatch {
  readonly #tools: Tools;
  readonly #link: string;
  #traffic: ReadonlyMap<PublicKey, Traffic> = new Map();
  #silent = '{}';

  constructor(tools: Tools, link: string) {
    this.#tools = tools;
    this.#link = link;
  }

  /**
   * Takes one more look into account; notes which peers do not answer, when they are others. One without keepalives and without a
   * session is left out: it may be a host that is off.
   */
  async note({ actual }: Survey): Promise<void> {
    const at = this.#tools.monotonic();
    const peers = actual.device?.peers ?? [];
    this.#traffic = new Map(
      peers.map((peer) => [peer.publicKey, followTraffic(this.#traffic.get(peer.publicKey), peer, at)]),
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
