import { CpnError, expectCpnError } from '../../../core/errors/index.ts';
import type { EchoRequest } from '../../../core/health/path-mtu.ts';
import {
  areAnswered,
  type DirectPath,
  handlePathEvent,
  nextMoment,
  type PathAction,
  type PathEnd,
  type PathEvent,
  resumePaths,
} from '../../../core/paths/direct-paths.ts';
import type { Evaluation } from '../../reconcile/evaluate-network.ts';
import { secondsNow, type Tools } from '../../tools.ts';
import { readTraffic } from '../health/renew-peers.ts';
import {
  findPaths,
  findTrials,
  type PathPeer,
  probesFrom,
  removeTrial,
  switchToPath,
  switchToRelay,
} from './path-peer.ts';

/** Milliseconds for the answer to a probe of a path in use. */
const probeMs = 700;
/** Milliseconds between two readings of the counters while nothing is sent. */
const longestPauseMs = 30_000;
/** Bytes of a packet that passes on every path. */
const smallBytes = 84;

/** What a network is on this host, as of the latest pass. */
export interface PathContext {
  readonly evaluation: () => Evaluation | null;
  /** The peers to which direct paths may exist. */
  readonly peers: () => ReadonlyMap<number, PathPeer>;
  /** Called with paths that ended without a switch. The peers may use them. */
  readonly onGone: (peers: readonly number[], why: PathEnd) => void;
  /** Called after a switch. `why` is null for a direct path, and if the peer returned. */
  readonly onSwitch: (peer: PathPeer, to: 'direct' | 'relayed', why: PathEnd | null) => void;
}

/**
 * The paths of one network that are proven or in use: switches to each at the agreed moment,
 * watches it, and returns to the relay when it ends.
 */
export class PathsInUse {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #context: PathContext;
  /** Null before the first pass: the table of WireGuard may have paths of an earlier process. */
  #paths: readonly DirectPath[] | null = null;
  /** The packets that the interface had sent at the latest check; null without a count. */
  #sent: number | null = null;
  /** When the counters of the paths were read. */
  #countedAt = Number.NEGATIVE_INFINITY;
  #wake = () => {};

  constructor(tools: Tools, link: string, context: PathContext) {
    this.#tools = tools;
    this.#link = link;
    this.#context = context;
  }

  /** True before the paths of an earlier process are known. */
  get isUnknown(): boolean {
    return this.#paths === null;
  }

  get ids(): readonly number[] {
    return (this.#paths ?? []).map(({ peer }) => Number(peer));
  }

  /**
   * The first pass adopts the paths of an earlier process, and ends its trials: this process gets
   * no moment to switch to them. Each pass drops the paths it removed.
   *
   * @param keepsPath false for a peer that left, for one whose session ended with a key, and for
   *   all once this host takes no paths
   */
  resume(evaluation: Evaluation | null, keepsPath: (peer: number) => boolean): void {
    if (evaluation === null) this.#paths = [];
    else if (this.#paths === null) {
      this.#paths = resumePaths(findPaths(evaluation, secondsNow(this.#tools)), this.#now());
      for (const peer of findTrials(evaluation, this.#context.peers())) void this.#forget(peer, 'lost');
    } else {
      const gone = this.ids.filter((id) => !keepsPath(id));
      this.#paths = this.#paths.filter(({ peer }) => !gone.includes(Number(peer)));
      if (gone.length > 0) this.#context.onGone(gone, 'moved');
    }
    this.#wake();
  }

  /** Handles an event, and does what follows from it. */
  async handle(event: PathEvent): Promise<void> {
    if (this.#paths === null) return;
    const { paths, actions } = handlePathEvent(this.#paths, event, this.#now());
    this.#paths = paths;
    this.#wake();
    for (const action of actions) await this.#apply(action);
  }

  async #apply(action: PathAction): Promise<void> {
    const peer = this.#context.peers().get(Number(action.peer));
    const evaluation = this.#context.evaluation();
    if (peer === undefined || evaluation === null) return;
    try {
      if (action.do === 'probe') return void this.#probe(peer, action.by, evaluation);
      if (action.do === 'forget') return await this.#forget(peer, action.why);
      const isDirect = action.do === 'switch';
      const others = (this.#paths ?? []).flatMap(({ peer: id }) =>
        id === peer.id ? [] : (this.#context.peers().get(Number(id)) ?? []),
      );
      // Without the lock: the agreed moment does not wait for a pass, which leaves the peer alone.
      await this.#tools.host.apply(
        isDirect ? switchToPath(this.#link, peer) : switchToRelay(this.#link, peer, evaluation, others),
      );
      // The other side has no answer from now on. The next pass finds what the map requires.
      if (!isDirect) await this.#tools.host.apply(removeTrial(this.#link, peer));
      const facts = { interface: this.#link, peer: peer.name };
      if (isDirect) this.#tools.log.info(facts, 'a peer is reached directly');
      else
        this.#tools.log.info(
          { ...facts, why: action.why ?? 'the peer returned' },
          'a peer is reached through the relay',
        );
      this.#context.onSwitch(peer, isDirect ? 'direct' : 'relayed', action.do === 'return' ? action.why : null);
    } catch (error) {
      if (!(error instanceof CpnError)) throw error;
      this.#tools.log.warn(
        { interface: this.#link, peer: peer.name, error: error.message },
        'a path could not be changed',
      );
      // The next pass repairs the table; the other side must return all the same.
      if (action.do === 'return') this.#context.onSwitch(peer, 'relayed', action.why);
    }
  }

  /** Removes a peer to which this host never switched. The peer itself may have done so. */
  async #forget(peer: PathPeer, why: PathEnd | null): Promise<void> {
    if (why !== null) this.#context.onGone([peer.id], why);
    await this.#tools.host.apply(removeTrial(this.#link, peer)).catch(expectCpnError);
  }

  /** True for a proven path without a moment to switch. */
  isWaiting(id: number): boolean {
    return this.#paths?.some(({ peer, state }) => peer === id && state === 'proven') ?? false;
  }

  /** Without an answer, or a way to get one, the path ends. Others do not wait for it. */
  async #probe(peer: PathPeer, by: DirectPath['by'], { desired }: Evaluation): Promise<void> {
    let isAnswered = false;
    try {
      isAnswered = await this.#answers(peer, by, desired);
    } catch (error) {
      expectCpnError(error);
    }
    await this.handle({ event: 'probed', peer: peer.id, isAnswered });
  }

  /**
   * True if packets of all sizes pass. Without IPv6 on both sides, packets of the network test
   * that. A firewall may drop echoes of any size: then another answer is enough.
   */
  async #answers(
    { address, probeAddress }: PathPeer,
    by: DirectPath['by'],
    desired: Evaluation['desired'],
  ): Promise<boolean> {
    const { host } = this.#tools;
    const from = probesFrom(this.#link, desired);
    const probe = (to: PathPeer['address'], more: Pick<EchoRequest, 'count' | 'from'>) =>
      Promise.all(
        [desired.config.mtu, smallBytes].map((bytes) => host.probeSize?.(to, { bytes, ...more }, probeMs) ?? false),
      );
    if (from !== null && by !== 'handshake') {
      const [isFull, isSmall] = await probe(probeAddress, { count: 2, from });
      if (by === 'probe' || isFull || isSmall) return isFull === true && isSmall === true;
    }
    // The peer may switch a moment later.
    const [isFull, isSmall] = await probe(address, { count: 4 });
    return isFull && isSmall ? true : !isFull && !isSmall && (await host.isTcpReachable(address, probeMs));
  }

  /** Observes the paths for as long as there are any. At the end, only those in use stay. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#watch(signal);
    for (const { peer: id, state } of this.#paths ?? []) {
      const peer = this.#context.peers().get(Number(id));
      if (peer !== undefined && state !== 'direct') await this.#forget(peer, null);
    }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#wake());
    let observedAt = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      const next = nextMoment(this.#paths ?? [], observedAt);
      const woken = new Promise<boolean>((resolve) => {
        this.#wake = () => resolve(false);
      });
      // A timer may end a millisecond early: an early observation is repeated at once.
      const due = next !== null && this.#tools.sleep(Math.max(0, next - this.#now()), signal).then(() => true);
      const isDue = await Promise.race(due === false ? [woken] : [woken, due]);
      if (signal.aborted) return;
      if (!isDue) continue;
      if (this.#paths?.some(({ state, at }) => state === 'switching' && at <= (next ?? 0))) {
        // Both hosts switch at this moment: no program is started before.
        await this.handle({ event: 'moment' });
        continue;
      }
      if (!(await this.#isQuiet())) await this.#observe();
      observedAt = this.#now();
    }
  }

  /** True if nothing was sent since the last call: then no program is started. */
  async #isQuiet(): Promise<boolean> {
    const sent = (await this.#tools.host.countSent?.(this.#link)) ?? null;
    const isSame = sent !== null && sent === this.#sent;
    this.#sent = sent;
    return isSame && areAnswered(this.#paths ?? []) && this.#now() - this.#countedAt < longestPauseMs;
  }

  async #observe(): Promise<void> {
    this.#countedAt = this.#now();
    const traffic = await readTraffic(this.#tools, this.#link);
    // A failed reading proves nothing. The network has a connector at least.
    if (traffic.size === 0) return;
    const peers = [...this.#context.peers().values()].flatMap(({ id, publicKey }) => {
      const counters = traffic.get(publicKey);
      return counters === undefined ? [] : [[id, counters] as const];
    });
    await this.handle({ event: 'observed', peers: new Map(peers) });
  }

  #now(): number {
    return this.#tools.monotonic() * 1000;
  }
}
