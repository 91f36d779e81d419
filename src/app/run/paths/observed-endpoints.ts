import type { ObservedEndpoint } from '../../../contract/paths.ts';
import type { PublicKey } from '../../../core/crypto/keys.ts';
import type { ActualPeer } from '../../../core/host-state/actual.ts';
import { formatEndpoint } from '../../../core/net/endpoint.ts';
import type { Evaluation } from '../../reconcile/evaluate-network.ts';

interface Seen {
  readonly endpoint: string;
  readonly handshake: number;
  readonly stood: boolean;
}

/** The endpoints of peers in WireGuard's table, and whether each stood for two handshakes. */
export class ObservedEndpoints {
  #seen: ReadonlyMap<PublicKey, Seen> = new Map();

  note(peers: readonly ActualPeer[]): void {
    const seen = peers.flatMap(({ publicKey, endpoint, latestHandshake }): [PublicKey, Seen][] => {
      if (endpoint === null || latestHandshake === null) return [];
      const [before, text] = [this.#seen.get(publicKey), formatEndpoint(endpoint)];
      if (before?.endpoint !== text) return [[publicKey, { endpoint: text, handshake: latestHandshake, stood: false }]];
      const stood = before.stood || latestHandshake > before.handshake;
      return [[publicKey, { endpoint: text, handshake: latestHandshake, stood }]];
    });
    this.#seen = new Map(seen);
  }

  /** What this host states about some peers of the network. */
  state({ state }: Evaluation, ids: readonly number[]): ObservedEndpoint[] {
    const wanted = new Set<unknown>(ids);
    return state.membership.map.peers.flatMap(({ id, publicKey }) => {
      const seen = this.#seen.get(publicKey);
      if (typeof id !== 'number' || !wanted.has(id) || seen === undefined) return [];
      return [{ peer: id, endpoint: seen.endpoint, stood: seen.stood }];
    });
  }
}
