import type { PublicKey } from '../../core/keys.ts';
import type { Failure, Peer } from '../../core/model.ts';
import { followTraffic, isSilent, type Traffic } from '../../core/traffic.ts';
import type { Survey } from '../survey.ts';
import type { Tools } from '../tools.ts';
import { readTraffic } from './read-traffic.ts';

/** Milliseconds between two looks. */
const every = 5_000;

/**
 * On a connector that is not the only one: notices the hosts that it cannot reach any more, though another may, and those that
 * are heard again. It sends them nothing of its own: a host to which nobody sends may be out of reach unnoticed.
 */
export class DetourWatch {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #tell: () => void;
  #hosts: readonly Peer[] = [];
  #traffic = new Map<PublicKey, Traffic>();
  /** Hosts out of reach, with the bytes received from them when that was noticed. */
  #lost = new Map<PublicKey, number>();
  #wake = () => {};

  /** @param tell is called whenever `failed` changes */
  constructor(tools: Tools, link: string, tell: () => void) {
    this.#tools = tools;
    this.#link = link;
    this.#tell = tell;
  }

  /** The hosts to reach another way. */
  get failed(): Failure[] {
    return this.#hosts.filter((host) => this.#lost.has(host.publicKey)).map((host) => ({ peer: host.id, back: false }));
  }

  /** Watches the hosts of this survey from now on; those of a network that was taken down (null) not at all. */
  follow(seen: Survey | null): void {
    this.#hosts = findHosts(seen);
    const isKnown = new Set(this.#hosts.map((host) => host.publicKey));
    for (const kept of [this.#lost, this.#traffic]) {
      for (const publicKey of kept.keys()) if (!isKnown.has(publicKey)) kept.delete(publicKey);
    }
    for (const { id, publicKey } of this.#hosts) {
      const isLost = seen?.state.failed.some(({ peer }) => peer === id) ?? false;
      const heard = seen?.actual.device?.peers.find((peer) => peer.publicKey === publicKey)?.rxBytes ?? 0;
      if (isLost && !this.#lost.has(publicKey)) this.#lost.set(publicKey, heard);
    }
    this.#wake();
  }

  /** Goes on until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#wake());
    while (!signal.aborted) {
      if (this.#hosts.length === 0) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      await this.#look();
      await this.#tools.sleep(every, signal);
    }
  }

  async #look(): Promise<void> {
    const before = this.#lost.size;
    const now = this.#tools.monotonic();
    const peers = await readTraffic(this.#tools, this.#link);
    let isHeard = false;
    for (const { publicKey } of this.#hosts) {
      const peer = peers.get(publicKey);
      if (peer === undefined) continue;
      const traffic = followTraffic(this.#traffic.get(publicKey), peer, now);
      this.#traffic.set(publicKey, traffic);
      const lostAt = this.#lost.get(publicKey);
      if (lostAt === undefined && isSilent(traffic, now)) this.#lost.set(publicKey, peer.rxBytes);
      if (lostAt !== undefined && peer.rxBytes !== lostAt) isHeard = this.#lost.delete(publicKey) || isHeard;
    }
    if (isHeard || this.#lost.size !== before) this.#tell();
  }
}

/** The hosts that this one reaches directly, where it is a connector and there is another. */
function findHosts(seen: Survey | null): Peer[] {
  if (seen === null || seen.state.enrollment.type !== 'connector') return [];
  const { map } = seen.state.membership;
  const reached = new Set(seen.desired.config.peers.map((peer) => peer.publicKey));
  const others = map.peers.filter((peer) => reached.has(peer.publicKey));
  return others.some((peer) => peer.type === 'connector') ? others.filter((peer) => peer.type !== 'connector') : [];
}
