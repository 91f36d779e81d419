import { expectCpnError } from '../../../core/errors/index.ts';
import {
  findNarrowest,
  isPathDue,
  leastPathMtu,
  mayChange,
  nameUnderlay,
  newPath,
  type PathMtu,
  type ProbedPath,
  recordMeasurement,
  trackPath,
} from '../../../core/health/path-mtu.ts';
import type { Peer, PeerId } from '../../../core/map/model.ts';
import type { Evaluation } from '../../reconcile/evaluate-network.ts';
import type { Pass } from '../../reconcile/pass.ts';
import { secondsNow, type Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';
import type { PendingUpdate } from '../pending-update.ts';
import { TransitionLogger } from '../transition-logger.ts';
import { findCandidates, type MeasuredPeer, measurePaths } from './measure-paths.ts';

/**
 * Measures the peers' path MTU with echoes through the tunnel, and determines the tunnel's MTU: at
 * the start, for a new session, endpoint or underlay, and periodically while a path is in use.
 */
export class MtuProber implements PassListener {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #update: PendingUpdate;
  readonly #transitions: TransitionLogger;
  #evaluation: Evaluation | null = null;
  #candidates: readonly MeasuredPeer[] = [];
  #underlay = '';
  #paths = new Map<PeerId, ProbedPath>();
  /** The peers to which not even packets of the lowest MTU pass. */
  readonly #failing = new Set<PeerId>();
  /** The desired limit in the state: null for no limit, undefined if the state is right. */
  #wanted: PathMtu | null | undefined;
  #changedAt: number | null = null;
  /** A counter that changes with the underlay. */
  #place = 0;
  #wake = () => {};

  constructor(tools: Tools, link: string, update: PendingUpdate) {
    this.#tools = tools;
    this.#link = link;
    this.#update = update;
    const messages = { begins: 'the path MTU cannot be measured', ends: 'the path MTU can be measured again' };
    this.#transitions = new TransitionLogger(tools.log, { interface: link }, messages);
  }

  /** Discards all measurements, because the paths may have changed. */
  reset(): void {
    this.#paths = new Map();
    this.#place += 1;
  }

  /** A network that is down, or has a fixed MTU, is not measured. */
  onPass({ evaluation }: Pass): void {
    const isMeasured =
      evaluation?.state.enabled && evaluation.state.options.mtu === null && evaluation.actual.link !== null;
    this.#evaluation = isMeasured ? evaluation : null;
    if (this.#evaluation === null) {
      this.#candidates = [];
      this.#set(undefined);
      this.reset();
      return;
    }
    const underlay = nameUnderlay(this.#evaluation.actual.underlay);
    if (underlay !== this.#underlay) {
      this.#underlay = underlay;
      this.#set(undefined);
      this.reset();
    }
    this.#candidates = findCandidates(this.#evaluation, secondsNow(this.#tools));
    this.#followPaths(this.#evaluation);
    this.#settle();
    this.#wake();
  }

  #set(wanted: PathMtu | null | undefined): void {
    this.#wanted = wanted;
    this.#update.set({ pathMtu: wanted });
  }

  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#wake());
    while (!signal.aborted) {
      const due = this.#findDue();
      if (this.#evaluation !== null && due.length > 0) {
        await this.#measure(this.#evaluation, due, signal);
        continue;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Empty while a pass is about to change the MTU under the echoes. */
  #findDue(): readonly MeasuredPeer[] {
    if (this.#evaluation === null || this.#wanted !== undefined) return [];
    const { fittedMtu } = this.#evaluation.desired;
    const now = this.#tools.monotonic();
    return this.#candidates.filter(({ peer }) => {
      const path = this.#paths.get(peer.id);
      return path !== undefined && isPathDue(path, fittedMtu, now);
    });
  }

  #followPaths({ state, desired }: Evaluation): void {
    const listed = new Set(state.membership.map.peers.map(({ id }) => id));
    for (const id of this.#paths.keys()) if (!listed.has(id)) this.#paths.delete(id);
    const { pathMtu, fittedMtu } = desired;
    if (pathMtu && listed.has(pathMtu.peer) && !this.#paths.has(pathMtu.peer)) {
      // From the state on disk.
      const path = newPath(pathMtu.peer, null);
      this.#paths.set(pathMtu.peer, { ...path, size: pathMtu.mtu, measuredAt: this.#tools.monotonic() });
    }
    for (const { peer, observed } of this.#candidates) {
      const host = observed.endpoint?.host ?? null;
      const { rxBytes, txBytes } = observed;
      const known = this.#paths.get(peer.id) ?? newPath(peer.id, host);
      this.#paths.set(peer.id, trackPath(known, { host, rxBytes, txBytes }, fittedMtu));
    }
  }

  async #measure(evaluation: Evaluation, due: readonly MeasuredPeer[], signal: AbortSignal): Promise<void> {
    const place = this.#place;
    let sizes: ReadonlyMap<PeerId, number | null> = new Map();
    try {
      sizes = await measurePaths(this.#tools, evaluation, due, signal);
      this.#transitions.update(null);
    } catch (error) {
      this.#transitions.update(expectCpnError(error));
    }
    if (signal.aborted || place !== this.#place) return;
    const now = this.#tools.monotonic();
    for (const { peer } of due) {
      const path = this.#paths.get(peer.id);
      const size = sizes.get(peer.id) ?? null;
      if (path === undefined) continue;
      this.#paths.set(peer.id, recordMeasurement(path, size, now));
      if (size !== null) this.#logFailing(peer, size);
    }
    this.#settle();
  }

  #settle(): void {
    if (this.#evaluation === null) return;
    const now = this.#tools.monotonic();
    const { state, desired } = this.#evaluation;
    const { fittedMtu: full, pathMtu } = desired;
    const narrowest = findNarrowest(this.#paths.values(), full, now);
    const present = pathMtu?.mtu ?? full;
    if (this.#wanted !== undefined && (this.#wanted?.mtu ?? full) === present) this.#set(undefined);
    const next = this.#wanted === undefined ? present : (this.#wanted?.mtu ?? full);
    const mtu = narrowest?.size ?? full;
    if (mtu === next || !mayChange(next, mtu, this.#changedAt, now)) return;
    const peer = narrowest && state.membership.map.peers.find(({ id }) => id === narrowest.peer)?.name;
    const facts = { interface: this.#link, mtu, before: next, ...(peer && { peer }) };
    if (mtu < next) this.#tools.log.warn(facts, 'large packets to a peer are lost; lowering the MTU');
    else this.#tools.log.info(facts, 'larger packets pass again; raising the MTU');
    this.#changedAt = now;
    const measuredAt = this.#tools.now().toISOString();
    this.#set(narrowest && { mtu: narrowest.size, peer: narrowest.peer, underlay: this.#underlay, measuredAt });
    this.#update.trigger();
  }

  /** Such a path has another fault, or the peer does not answer large echoes: the MTU stays. */
  #logFailing({ id, name }: Peer, size: number): void {
    if (size >= leastPathMtu) this.#failing.delete(id);
    if (size >= leastPathMtu || this.#failing.has(id)) return;
    this.#failing.add(id);
    const facts = { interface: this.#link, peer: name, passed: size, least: leastPathMtu };
    this.#tools.log.warn(facts, 'packets of the smallest MTU to a peer are lost; the MTU is unchanged');
  }
}
