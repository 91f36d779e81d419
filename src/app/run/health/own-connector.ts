import type { PublicKey } from '../../../core/crypto/keys.ts';
import { type Liveness, resetSilence } from '../../../core/health/liveness.ts';
import {
  everyRound,
  newOwnLiveness,
  recordOwnTime,
  recordPacket,
  recordStart,
} from '../../../core/health/own-liveness.ts';
import type { ActualPeer } from '../../../core/host-state/actual.ts';
import type { PeerFailure, PeerId } from '../../../core/map/model.ts';
import { judgeRoutes } from '../../lan/serving.ts';
import type { Evaluation } from '../../reconcile/evaluate-network.ts';
import type { Pass } from '../../reconcile/pass.ts';

/** Seconds without a packet after which the counters of all peers are read. */
const quiet = 1.5 * everyRound;
/** Seconds of sleep that hosts do not notice. */
const longestNap = 1;
/** Rounds for which a reading can be compared with a later one. */
const comparable = 4;

/** Estimates whether the other hosts consider this connector silent or recovering. */
export class OwnConnector {
  #id: PeerId | null = null;
  #liveness: Liveness = newOwnLiveness('trusted');
  #inService = false;
  /** True while the network is down. */
  #isDown = false;
  /** Seconds that this host has slept since it booted; null before the first round. */
  #slept: number | null = null;
  #round = 0;
  #counters: { readonly round: number; readonly rxBytes: number } | null = null;
  /** The connectors that became silent since the last packet of any peer. */
  readonly #unproven = new Set<PublicKey>();

  /** The entry of this host; empty while hosts trust it, and for a host that shares no route. */
  get failed(): PeerFailure[] {
    const { state } = this.#liveness;
    return this.#id === null || state === 'trusted' ? [] : [{ peer: this.#id, back: state === 'back' }];
  }

  follow({ evaluation, changes }: Pass): void {
    if (evaluation === null) {
      this.#isDown = true;
      return;
    }
    const { state } = evaluation;
    const routes = judgeRoutes(evaluation);
    const id = routes.some(({ service }) => service.others.length > 0) ? state.membership.peer.id : null;
    if (this.#id === null && id !== null) this.#liveness = newOwnLiveness(savedStateOf(id, state));
    this.#id = id;
    const inService = routes.some(({ service }) => service.is === 'in service');
    // Hosts probe a standby less often.
    if (inService !== this.#inService) this.#liveness = resetSilence(this.#liveness);
    this.#inService = inService;
    const isNew = changes.some(({ kind, action }) => kind === 'interface' && action === 'add');
    if (this.#isDown || isNew) this.#liveness = recordStart(this.#liveness);
    this.#isDown = false;
  }

  /** True if the counters of all peers must be read to learn whether any packet arrives. */
  get isQuiet(): boolean {
    return this.#id !== null && this.#liveness.silence > quiet;
  }

  /**
   * Records a packet of any peer. Returns the connectors whose silence proves nothing: this host
   * itself was cut off.
   */
  hear(): ReadonlySet<PublicKey> {
    const unproven = new Set(this.#liveness.state === 'silent' ? this.#unproven : []);
    this.#unproven.clear();
    this.#liveness = recordPacket(this.#liveness);
    return unproven;
  }

  noteSilent(connector: PublicKey): void {
    this.#unproven.add(connector);
  }

  /** True if any peer sent a packet since a recent reading. */
  compare(peers: Iterable<ActualPeer>): boolean {
    const before = this.#counters;
    let rxBytes = 0;
    for (const peer of peers) rxBytes += peer.rxBytes;
    this.#counters = { round: this.#round, rxBytes };
    return before !== null && this.#round - before.round <= comparable && rxBytes > before.rxBytes;
  }

  /** @param slept seconds that this host has slept since it booted */
  recordTime(seconds: number, slept: number): void {
    if (this.#slept !== null && slept - this.#slept > longestNap) this.#liveness = recordStart(this.#liveness);
    this.#slept = slept;
    this.#round += 1;
    if (this.#id !== null) this.#liveness = recordOwnTime(this.#liveness, seconds, this.#inService);
  }
}

function savedStateOf(id: PeerId, { failed }: Evaluation['state']): Liveness['state'] {
  const saved = failed.find(({ peer }) => peer === id);
  return saved ? (saved.back ? 'back' : 'silent') : 'trusted';
}
