import type { PublicKey } from '../../../core/crypto/keys.ts';
import { isFresh } from '../../../core/health/peer-health.ts';
import type { ActualPeer } from '../../../core/host-state/actual.ts';
import type { Evaluation } from '../../reconcile/evaluate-network.ts';
import type { Pass } from '../../reconcile/pass.ts';
import { secondsNow, type Tools } from '../../tools.ts';
import { renewPeers } from '../health/renew-peers.ts';
import type { PassListener } from '../pass-listener.ts';

/**
 * Starts a handshake with each peer that had a session, after a pass created the interface again.
 * Without it, a peer sends with the lost session until it notices after 15 s, and hosts leave a
 * connector. A peer without an endpoint in the map gets the one that WireGuard had learned.
 */
export class SessionListener implements PassListener {
  readonly #tools: Tools;
  readonly #link: string;
  /** The peers with a session as of the last pass that found the interface. */
  #sessions: ReadonlyMap<PublicKey, ActualPeer> = new Map();

  constructor(tools: Tools, link: string) {
    this.#tools = tools;
    this.#link = link;
  }

  async onPass({ evaluation, changes }: Pass): Promise<void> {
    if (evaluation === null) return;
    if (evaluation.actual.device !== null) {
      this.#sessions = this.#findSessions(evaluation.actual.device.peers);
      return;
    }
    const isNew = changes.some(({ kind, action }) => kind === 'interface' && action === 'add');
    if (isNew && this.#sessions.size > 0) await this.#restore(evaluation);
  }

  #findSessions(peers: readonly ActualPeer[]): ReadonlyMap<PublicKey, ActualPeer> {
    const now = secondsNow(this.#tools);
    const inUse = peers.filter(({ endpoint, latestHandshake }) => endpoint !== null && isFresh(latestHandshake, now));
    return new Map(inUse.map((peer) => [peer.publicKey, peer]));
  }

  async #restore({ state }: Evaluation): Promise<void> {
    const renewed = await renewPeers(this.#tools, this.#link, (known) =>
      [...known.values()].flatMap((peer) => {
        const endpoint = this.#sessions.get(peer.publicKey)?.endpoint;
        return endpoint ? [{ ...peer, endpoint }] : [];
      }),
    );
    const keys = new Set(renewed.map(({ publicKey }) => publicKey));
    const peers = state.membership.map.peers.filter(({ publicKey }) => keys.has(publicKey));
    for (const { address } of peers) await this.#tools.host.triggerHandshake(address);
  }
}
