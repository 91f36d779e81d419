import type { PublicKey } from '../../../core/crypto/keys.ts';
import { comparePeerIds, type PeerFailure } from '../../../core/map/model.ts';
import { catalogue } from '../../../core/problems/problem.ts';
import type { Pass } from '../../reconcile/pass.ts';
import type { Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';
import type { PendingUpdate } from '../pending-update.ts';
import { ConnectorProber } from './connector-prober.ts';
import { RelayWatcher } from './relay-watcher.ts';

/** Detects the peers to avoid, by probes of connectors and traffic of hosts; logs each change. */
export class FailureTracker implements PassListener {
  readonly #tools: Pick<Tools, 'log'>;
  readonly #link: string;
  readonly #update: PendingUpdate;
  readonly #connectors: ConnectorProber;
  readonly #hosts: RelayWatcher;
  #names: ReadonlyMap<PeerFailure['peer'], string> = new Map();
  #own: PeerFailure['peer'] | null = null;
  /** Null before the first pass: the failures on disk then stay. */
  #failed: readonly PeerFailure[] | null = null;

  constructor(tools: Tools, link: string, update: PendingUpdate) {
    const compare = () => this.#compare();
    this.#tools = tools;
    this.#link = link;
    this.#update = update;
    this.#connectors = new ConnectorProber(tools, link, compare);
    this.#hosts = new RelayWatcher(tools, link, compare);
  }

  /** Records that this host may have moved: its peers may not have its new endpoint yet. */
  move(): void {
    this.#connectors.move();
  }

  /** The round-trip times in milliseconds of the probed connectors. */
  get rtts(): ReadonlyMap<PublicKey, number> {
    return this.#connectors.rtts;
  }

  onPass(pass: Pass): void {
    const { evaluation } = pass;
    this.#connectors.follow(pass);
    this.#hosts.follow(evaluation);
    this.#set(evaluation === null ? null : this.#gather());
    if (evaluation === null) return;
    this.#own = evaluation.state.membership.peer.id;
    this.#names = new Map(evaluation.state.membership.map.peers.map((peer) => [peer.id, peer.name]));
    // Without a trigger, a change during the pass would wait for the next one.
    if (JSON.stringify(this.#failed) !== JSON.stringify(evaluation.state.failed)) this.#update.trigger();
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#connectors.run(signal), this.#hosts.run(signal)]);
  }

  #set(failed: readonly PeerFailure[] | null): void {
    this.#failed = failed;
    this.#update.set({ failed });
  }

  #gather(): readonly PeerFailure[] {
    return [...this.#connectors.failed, ...this.#hosts.failed].toSorted((a, b) => comparePeerIds(a.peer, b.peer));
  }

  #compare(): void {
    const before = this.#failed ?? [];
    const failed = this.#gather();
    this.#set(failed);
    for (const { peer, back } of failed) {
      const known = before.find((each) => each.peer === peer);
      if (known?.back === back) continue;
      if (peer === this.#own) this.#logOwn(back);
      else if (back) this.#log('info', peer, 'a peer answers again; it is not trusted yet');
      else this.#log('warn', peer, catalogue['peer-silent'].title);
    }
    const trusted = before.filter(({ peer }) => !failed.some((each) => each.peer === peer));
    for (const { peer } of trusted) {
      const message =
        peer === this.#own ? 'this connector is trusted again' : 'a peer that did not answer is trusted again';
      this.#log('info', peer, message);
    }
    this.#update.trigger();
  }

  #logOwn(back: boolean): void {
    const facts = { interface: this.#link };
    if (back) this.#tools.log.info(facts, 'this connector receives packets; hosts may not trust it yet');
    else this.#tools.log.warn(facts, 'no packet of any peer arrives; this connector serves nothing');
  }

  #log(level: 'info' | 'warn', peer: PeerFailure['peer'], message: string): void {
    this.#tools.log[level]({ interface: this.#link, peer: this.#names.get(peer) ?? peer }, message);
  }
}
