import type { ActualPeer } from '../../core/actual.ts';
import type { Address } from '../../core/cidr.ts';
import { CpnError } from '../../core/errors.ts';
import { isFresh } from '../../core/health.ts';
import type { NetworkMap, Peer, PeerId } from '../../core/model.ts';
import {
  findNarrowest,
  followPath,
  guessSizes,
  isPathDue,
  leastPathMtu,
  mayChange,
  nameUnderlay,
  newPath,
  notePath,
  type PathMtu,
  type PeerPath,
} from '../../core/path-mtu.ts';
import { perObject } from '../../core/per-object.ts';
import { measureSize } from '../measure-size.ts';
import type { Survey } from '../survey.ts';
import { secondsNow, type Tools } from '../tools.ts';
import { Once } from './once.ts';

/** Peers whose paths are measured, where there are many. */
const mostPeers = 8;

/** A peer with a session. */
interface Candidate {
  readonly peer: Peer;
  readonly seen: ActualPeer;
}

/**
 * Measures with echoes through the tunnel which packets pass to the peers, and finds the MTU that follows from it: at the start, for
 * a new session or endpoint, after the underlay changed, and now and then while a path is used.
 */
export class MtuWatch {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #ring: () => void;
  readonly #once: Once;
  #seen: Survey | null = null;
  #candidates: readonly Candidate[] = [];
  #underlay = '';
  #paths = new Map<PeerId, PeerPath>();
  /** The peers to which not even packets of the least MTU pass. */
  readonly #hopeless = new Set<PeerId>();
  #told: PathMtu | null | undefined;
  #changedAt: number | null = null;
  /** Another number stands for another underlay. */
  #place = 0;
  #wake = () => {};

  /** @param ring is called when there is another MTU */
  constructor(tools: Tools, link: string, ring: () => void) {
    this.#tools = tools;
    this.#link = link;
    this.#ring = ring;
    const trouble = { begins: 'the path MTU cannot be measured', ends: 'the path MTU can be measured again' };
    this.#once = new Once(tools.log, { interface: link }, trouble);
  }

  /** What the state should hold; undefined where it is right. */
  get pathMtu(): PathMtu | null | undefined {
    return this.#told;
  }

  /** The way out may be another: every path is measured again. */
  forget(): void {
    this.#paths = new Map();
    this.#place += 1;
  }

  /** Takes one more pass into account. A network that was taken down (null), or has a fixed MTU, is not measured. */
  follow(seen: Survey | null): void {
    this.#seen = seen?.state.enabled && seen.state.options.mtu === null && seen.actual.link !== null ? seen : null;
    if (seen === null || this.#seen === null) {
      this.#candidates = [];
      this.#told = undefined;
      this.forget();
      return;
    }
    const underlay = nameUnderlay(seen.actual.surroundings);
    if (underlay !== this.#underlay) {
      this.#underlay = underlay;
      this.#told = undefined;
      this.forget();
    }
    this.#candidates = this.#findCandidates(seen);
    this.#followPaths(seen);
    this.#settle();
    this.#wake();
  }

  /** Goes on until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#wake());
    while (!signal.aborted) {
      const due = this.#findDue();
      if (this.#seen !== null && due.length > 0) {
        await this.#measure(this.#seen, due, signal);
        continue;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** None while a pass is about to change the MTU under the echoes. */
  #findDue(): readonly Candidate[] {
    if (this.#seen === null || this.#told !== undefined) return [];
    const { fittedMtu } = this.#seen.desired;
    const now = this.#tools.monotonic();
    return this.#candidates.filter(({ peer }) => {
      const path = this.#paths.get(peer.id);
      return path !== undefined && isPathDue(path, fittedMtu, now);
    });
  }

  /** Those with a session: first the one that limits the MTU, then connectors, then those with the most traffic. */
  #findCandidates({ state, desired, actual }: Survey): readonly Candidate[] {
    const now = secondsNow(this.#tools);
    const peers = byPublicKey(state.membership.map);
    const rank = ({ peer }: Candidate) => (peer.id === desired.pathMtu?.peer ? 2 : peer.type === 'connector' ? 1 : 0);
    const traffic = ({ seen }: Candidate) => seen.rxBytes + seen.txBytes;
    return (actual.device?.peers ?? [])
      .flatMap((seen) => {
        const peer = isFresh(seen.latestHandshake, now) ? peers.get(seen.publicKey) : undefined;
        return peer === undefined ? [] : [{ peer, seen }];
      })
      .toSorted((one, other) => rank(other) - rank(one) || traffic(other) - traffic(one))
      .slice(0, mostPeers);
  }

  #followPaths({ state, desired }: Survey): void {
    const listed = byId(state.membership.map);
    for (const id of this.#paths.keys()) if (!listed.has(id)) this.#paths.delete(id);
    const { pathMtu, fittedMtu } = desired;
    if (pathMtu && listed.has(pathMtu.peer) && !this.#paths.has(pathMtu.peer)) {
      // What is on disk of an earlier time.
      const path = newPath(pathMtu.peer, null);
      this.#paths.set(pathMtu.peer, { ...path, size: pathMtu.mtu, measuredAt: this.#tools.monotonic() });
    }
    for (const { peer, seen } of this.#candidates) {
      const host = seen.endpoint?.host ?? null;
      const { rxBytes, txBytes } = seen;
      const known = this.#paths.get(peer.id) ?? newPath(peer.id, host);
      this.#paths.set(peer.id, followPath(known, { host, rxBytes, txBytes }, fittedMtu));
    }
  }

  async #measure({ desired, actual }: Survey, due: readonly Candidate[], signal: AbortSignal): Promise<void> {
    const place = this.#place;
    const { fittedMtu: full, pathMtu } = desired;
    const sizes = new Map<PeerId, number | null>();
    try {
      // The pass may have lowered it since that look.
      const isNarrow = Math.min(actual.link?.mtu ?? full, desired.config.mtu) < full;
      const addresses = due.map(({ peer }) => peer.address);
      const narrow = isNarrow ? await this.#tools.host.widen(this.#link, addresses, full) : null;
      try {
        const measure = (address: Address) => measureSize(this.#tools, address, full, guessSizes(pathMtu), signal);
        await Promise.all(due.map(async ({ peer }) => sizes.set(peer.id, await measure(peer.address))));
      } finally {
        await narrow?.();
      }
      this.#once.notice(null);
    } catch (error) {
      if (!(error instanceof CpnError)) throw error;
      this.#once.notice(error);
    }
    if (signal.aborted || place !== this.#place) return;
    const now = this.#tools.monotonic();
    for (const { peer } of due) {
      const path = this.#paths.get(peer.id);
      const size = sizes.get(peer.id) ?? null;
      if (path === undefined) continue;
      this.#paths.set(peer.id, notePath(path, size, now));
      if (size !== null) this.#tellHopeless(peer, size);
    }
    this.#settle();
  }

  /** Compares the MTU that should be with the one that is. */
  #settle(): void {
    if (this.#seen === null) return;
    const now = this.#tools.monotonic();
    const { state, desired } = this.#seen;
    const { fittedMtu: full, pathMtu } = desired;
    const narrowest = findNarrowest(this.#paths.values(), full, now);
    const present = pathMtu?.mtu ?? full;
    if (this.#told !== undefined && (this.#told?.mtu ?? full) === present) this.#told = undefined;
    const next = this.#told === undefined ? present : (this.#told?.mtu ?? full);
    const wanted = narrowest?.size ?? full;
    if (wanted === next || !mayChange(next, wanted, this.#changedAt, now)) return;
    const peer = narrowest && byId(state.membership.map).get(narrowest.peer)?.name;
    const facts = { interface: this.#link, mtu: wanted, before: next, ...(peer && { peer }) };
    if (wanted < next) this.#tools.log.warn(facts, 'large packets to a peer are lost; lowering the MTU');
    else this.#tools.log.info(facts, 'larger packets pass again; raising the MTU');
    this.#changedAt = now;
    const measuredAt = this.#tools.now().toISOString();
    this.#told = narrowest && { mtu: narrowest.size, peer: narrowest.peer, underlay: this.#underlay, measuredAt };
    this.#ring();
  }

  /** Such a path has another fault, or its peer does not answer large echoes: it lowers no MTU. */
  #tellHopeless({ id, name }: Peer, size: number): void {
    if (size >= leastPathMtu) this.#hopeless.delete(id);
    if (size >= leastPathMtu || this.#hopeless.has(id)) return;
    this.#hopeless.add(id);
    const facts = { interface: this.#link, peer: name, passed: size, least: leastPathMtu };
    this.#tools.log.warn(facts, 'echoes of the least MTU to a peer are lost; the MTU stays');
  }
}

/** Of a large network, made once for each map. */
const byPublicKey = perObject(({ peers }: NetworkMap) => new Map(peers.map((peer) => [peer.publicKey, peer])));
const byId = perObject(({ peers }: NetworkMap) => new Map(peers.map((peer) => [peer.id, peer])));
