import type { PublicKey } from '../../../core/crypto/keys.ts';
import { isSilent, type Traffic, trackTraffic } from '../../../core/health/traffic.ts';
import type { Peer, PeerFailure } from '../../../core/map/model.ts';
import { dialsOnly } from '../../../core/routing/topology/via-connectors.ts';
import type { Evaluation } from '../../reconcile/evaluate-network.ts';
import type { Tools } from '../../tools.ts';
import { readTraffic } from './renew-peers.ts';

/** Milliseconds between two readings of the counters. */
const every = 5_000;

/**
 * On one of several connectors, detects hosts that only another one may reach, and hosts that send
 * again. It sends no probes: without traffic, an unreachable host is not detected.
 */
export class RelayWatcher {
  readonly #tools: Pick<Tools, 'host' | 'monotonic' | 'sleep'>;
  readonly #link: string;
  readonly #onChange: () => void;
  #hosts: readonly Peer[] = [];
  #traffic = new Map<PublicKey, Traffic>();
  /** Unreachable hosts, with the bytes received by then. */
  #lost = new Map<PublicKey, number>();
  #wake = () => {};

  /** @param onChange called whenever `failed` changes */
  constructor(tools: Pick<Tools, 'host' | 'monotonic' | 'sleep'>, link: string, onChange: () => void) {
    this.#tools = tools;
    this.#link = link;
    this.#onChange = onChange;
  }

  /** The hosts to reach through another connector. */
  get failed(): PeerFailure[] {
    return this.#hosts.filter((host) => this.#lost.has(host.publicKey)).map((host) => ({ peer: host.id, back: false }));
  }

  /** Watches this evaluation's hosts from now on; null (the network is down) has none. */
  follow(evaluation: Evaluation | null): void {
    this.#hosts = findHosts(evaluation);
    const isKnown = new Set(this.#hosts.map((host) => host.publicKey));
    for (const kept of [this.#lost, this.#traffic]) {
      for (const publicKey of kept.keys()) if (!isKnown.has(publicKey)) kept.delete(publicKey);
    }
    for (const { id, publicKey } of this.#hosts) {
      const isLost = evaluation?.state.failed.some(({ peer }) => peer === id) ?? false;
      const rxBytes = evaluation?.actual.device?.peers.find((peer) => peer.publicKey === publicKey)?.rxBytes ?? 0;
      if (isLost && !this.#lost.has(publicKey)) this.#lost.set(publicKey, rxBytes);
    }
    this.#wake();
  }

  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#wake());
    while (!signal.aborted) {
      if (this.#hosts.length === 0) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      await this.#readCounters();
      await this.#tools.sleep(every, signal);
    }
  }

  async #readCounters(): Promise<void> {
    const before = this.#lost.size;
    const now = this.#tools.monotonic();
    const peers = await readTraffic(this.#tools, this.#link);
    let isBack = false;
    for (const { publicKey } of this.#hosts) {
      const peer = peers.get(publicKey);
      if (peer === undefined) continue;
      const traffic = trackTraffic(this.#traffic.get(publicKey), peer, now);
      this.#traffic.set(publicKey, traffic);
      const lostAt = this.#lost.get(publicKey);
      if (lostAt === undefined && isSilent(traffic, now)) this.#lost.set(publicKey, peer.rxBytes);
      if (lostAt !== undefined && peer.rxBytes !== lostAt) isBack = this.#lost.delete(publicKey) || isBack;
    }
    if (isBack || this.#lost.size !== before) this.#onChange();
  }
}

/** Hosts with direct packets that may dial another connector; empty unless this is a connector. */
function findHosts(evaluation: Evaluation | null): Peer[] {
  if (evaluation === null || evaluation.state.enrollment.type !== 'connector') return [];
  const { map } = evaluation.state.membership;
  const reached = new Set(evaluation.desired.config.peers.map((peer) => peer.publicKey));
  const others = map.peers.filter((peer) => reached.has(peer.publicKey));
  return others.some((peer) => peer.type === 'connector')
    ? others.filter(
        (peer) => peer.type !== 'connector' && !dialsOnly(peer, { id: evaluation.state.membership.peer.id }),
      )
    : [];
}
