import { isFresh } from '../../core/health.ts';
import type { PublicKey } from '../../core/keys.ts';
import { followTraffic, isSilent, type Traffic } from '../../core/traffic.ts';
import type { Survey } from '../survey.ts';
import { secondsNow, type Tools } from '../tools.ts';

/** Follows from pass to pass whether the peers answer, which one look at the host cannot tell. */
export class PeerWatch {
  readonly #tools: Tools;
  #traffic: ReadonlyMap<PublicKey, Traffic> = new Map();
  #silent = '{}';

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  /**
   * Takes note of one more look. Returns the peers that do not answer although their handshake is fresh, each with the bytes
   * received from it; null where these are the same as before.
   */
  note({ actual }: Survey): Record<PublicKey, number> | null {
    const at = this.#tools.monotonic();
    const peers = actual.device?.peers ?? [];
    this.#traffic = new Map(
      peers.map((peer) => [peer.publicKey, followTraffic(this.#traffic.get(peer.publicKey), peer, at)]),
    );
    const silent = peers.filter(({ publicKey, latestHandshake }) => {
      const traffic = this.#traffic.get(publicKey);
      return traffic && isSilent(traffic, at) && isFresh(latestHandshake, secondsNow(this.#tools));
    });
    const found = Object.fromEntries(silent.map((peer) => [peer.publicKey, peer.rxBytes]));
    const text = JSON.stringify(found);
    if (text === this.#silent) return null;
    this.#silent = text;
    return found;
  }
}
