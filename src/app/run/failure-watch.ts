import { comparePeerIds, type Failure } from '../../core/model.ts';
import type { Survey } from '../survey.ts';
import type { Tools } from '../tools.ts';
import { ConnectorWatch } from './connector-watch.ts';
import { DetourWatch } from './detour-watch.ts';

/** Knows which peers are to be avoided for now, by asking connectors and by listening to hosts; tells the log of each change. */
export class FailureWatch {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #connectors: ConnectorWatch;
  readonly #hosts: DetourWatch;
  readonly #tell: () => void;
  #names: ReadonlyMap<Failure['peer'], string> = new Map();
  /** Null until there was a first look at the network. */
  #told: readonly Failure[] | null = null;

  /** @param tell is called whenever there is something new in `failed` */
  constructor(tools: Tools, link: string, tell: () => void) {
    const compare = () => this.#compare();
    this.#tools = tools;
    this.#link = link;
    this.#connectors = new ConnectorWatch(tools, link, compare);
    this.#hosts = new DetourWatch(tools, link, compare);
    this.#tell = tell;
  }

  /** The peers to avoid; null while nothing is known of it beside what is on disk. */
  get failed(): readonly Failure[] | null {
    return this.#told;
  }

  /** Watches the peers of this survey from now on; those of a network that was taken down (null) not at all. */
  follow(seen: Survey | null): void {
    this.#connectors.follow(seen);
    this.#hosts.follow(seen);
    this.#told = seen === null ? null : this.#gather();
    if (seen === null) return;
    this.#names = new Map(seen.state.membership.map.peers.map((peer) => [peer.id, peer.name]));
    // What changed while that survey was acted on has not been told to anybody.
    if (JSON.stringify(this.#told) !== JSON.stringify(seen.state.failed)) this.#tell();
  }

  /** Goes on until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#connectors.watch(signal), this.#hosts.watch(signal)]);
  }

  #gather(): readonly Failure[] {
    return [...this.#connectors.failed, ...this.#hosts.failed].toSorted((a, b) => comparePeerIds(a.peer, b.peer));
  }

  #compare(): void {
    const before = this.#told ?? [];
    this.#told = this.#gather();
    for (const { peer, back } of this.#told) {
      const known = before.find((each) => each.peer === peer);
      if (known?.back === back) continue;
      if (back) this.#log('info', peer, 'a peer that did not answer is heard again');
      else this.#log('warn', peer, 'a peer does not answer; going another way where there is one');
    }
    const trusted = before.filter(({ peer }) => !this.#told?.some((each) => each.peer === peer));
    for (const { peer } of trusted) this.#log('info', peer, 'a peer that did not answer is trusted again');
    this.#tell();
  }

  #log(level: 'info' | 'warn', peer: Failure['peer'], message: string): void {
    this.#tools.log[level]({ interface: this.#link, peer: this.#names.get(peer) ?? peer }, message);
  }
}
