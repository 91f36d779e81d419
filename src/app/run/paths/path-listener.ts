import type { PeerMessage } from '../../../contract/network.ts';
import type { PathSignals } from '../../../contract/paths.ts';
import { CpnError, expectCpnError } from '../../../core/errors/index.ts';
import { formatEndpoint, type SocketEndpoint } from '../../../core/net/endpoint.ts';
import type { TryMessage } from '../../../core/paths/attempt-state.ts';
import {
  type DirectPath,
  handlePathEvent,
  nextMoment,
  type PathAction,
  type PathEnd,
  type PathEvent,
  resumePaths,
} from '../../../core/paths/direct-paths.ts';
import { findLocalCandidates } from '../../../core/paths/local-candidates.ts';
import type { Evaluation } from '../../reconcile/evaluate-network.ts';
import type { Pass } from '../../reconcile/pass.ts';
import type { Tools } from '../../tools.ts';
import { readTraffic } from '../health/renew-peers.ts';
import type { PassListener } from '../pass-listener.ts';
import { DestinationWatcher } from './destination-watcher.ts';
import { ObservedEndpoints } from './observed-endpoints.ts';
import { findPathPeers, findPaths, type PathPeer, removeTrial, switchToPath, switchToRelay } from './path-peer.ts';
import { PathRecorder } from './path-recorder.ts';
import { runAttempt } from './run-attempt.ts';
import { signalPaths } from './signal-paths.ts';

/** The most attempts and paths of a host at once, as in the contract. */
const mostPairs = 32;
/** The most endpoints in one request, as in the contract. */
const mostObserved = 64;
/** Milliseconds for the answer to a probe of a path in use. */
const probeMs = 700;
/** Bytes of a packet that passes on every path. */
const probeBytes = 84;
/** Milliseconds between two requests for one peer, which double from the first to the last. */
const retry = { baseMs: 7_500, capMs: 1_800_000 };
/** Milliseconds to the control plane and back, until it was measured. */
const usualRoundTrip = 100;

/**
 * Follows the direct paths of one network: requests them for peers that this host exchanges packets
 * with, tries them when the control plane sends candidates, switches at the agreed moment, and
 * returns to the relay when a path ends. Passes recognize the paths in WireGuard's table.
 */
export class PathListener implements PassListener {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #trigger: () => void;
  readonly #destinations: DestinationWatcher;
  readonly #observed = new ObservedEndpoints();
  readonly #recorder: PathRecorder;
  readonly #ending = new AbortController();
  readonly #attempts = new Map<number, Promise<void>>();
  /** Milliseconds at which peers were added with an endpoint. */
  readonly #additions: number[] = [];
  /** Peers whose endpoints the control plane requested. */
  readonly #asked = new Set<number>();
  #observing: Promise<void> | null = null;
  /** Peers whose paths ended when this host moved. */
  readonly #moved = new Set<number>();
  /** How often a path to each peer was requested since it last had one, and when to do so again. */
  readonly #requests = new Map<number, { readonly count: number; readonly nextAt: number }>();
  #evaluation: Evaluation | null = null;
  #peers: ReadonlyMap<number, PathPeer> = new Map();
  /** Null before the first pass: the table of WireGuard may have paths of an earlier process. */
  #paths: readonly DirectPath[] | null = null;
  #roundTrip = usualRoundTrip;
  #wake = () => {};

  /** @param trigger starts a pass */
  constructor(tools: Tools, link: string, trigger: () => void) {
    this.#tools = tools;
    this.#link = link;
    this.#trigger = trigger;
    this.#recorder = new PathRecorder(tools, link);
    this.#destinations = new DestinationWatcher(tools, link, (addresses) => this.#want(addresses));
  }

  onPass({ evaluation }: Pass): void {
    this.#evaluation = evaluation;
    this.#peers = evaluation === null ? new Map() : findPathPeers(evaluation);
    this.#observed.note(evaluation?.actual.device?.peers ?? []);
    this.#destinations.follow(this.#peers.size > 0);
    if (evaluation === null) this.#paths = [];
    else this.#paths ??= resumePaths(findPaths(evaluation), this.#now());
    if (evaluation !== null && this.#moved.size > 0) {
      void this.#signal({ wanted: [...this.#moved].slice(0, mostPairs), candidates: this.#candidates(evaluation) });
      this.#moved.clear();
    }
    this.#wake();
  }

  /** Returns to the relay: this host may have moved, and its peers may have an old endpoint. */
  move(): void {
    this.#requests.clear();
    void this.#handle({ event: 'moved' });
  }

  /** Does what the control plane's messages request, without delaying the caller. */
  receive(messages: readonly PeerMessage[]): void {
    for (const message of messages) void this.#receive(message);
  }

  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => {
      this.#ending.abort();
      this.#wake();
    });
    await Promise.all([this.#destinations.run(signal), this.#watch(signal)]);
    await Promise.all(this.#attempts.values());
    await this.#recorder.settle();
  }

  async #receive({ kind, data }: PeerMessage): Promise<void> {
    const evaluation = this.#evaluation;
    if (evaluation === null || kind === 'probe') return;
    if (kind === 'observe') {
      for (const peer of data.peers) this.#asked.add(peer);
      this.#observing ??= this.#stateObserved().finally(() => (this.#observing = null));
      return;
    }
    if (kind === 'candidates') return this.#signal({ candidates: this.#candidates(evaluation) });
    if (kind === 'try') return this.#try(evaluation, data);
    if (kind === 'return') return this.#handle({ event: 'return', peer: data.peer });
    return this.#handle({ event: 'switch', ...data, roundTrip: this.#roundTrip });
  }

  /** States the endpoints of all peers that were named meanwhile in one request. */
  async #stateObserved(): Promise<void> {
    while (this.#asked.size > 0 && this.#evaluation !== null && !this.#ending.signal.aborted) {
      const peers = [...this.#asked].slice(0, mostObserved);
      for (const peer of peers) this.#asked.delete(peer);
      this.#observed.note([...(await readTraffic(this.#tools, this.#link)).values()]);
      await this.#signal({ observed: this.#observed.state(this.#evaluation, peers) });
    }
  }

  #candidates({ actual, desired, state, taken }: Evaluation): string[] {
    const { listenPort = null } = actual.device ?? {};
    if (listenPort === null || !state.options.localCandidates) return [];
    const tunnel = { range: state.membership.map.cidr, routes: [...taken, ...desired.routes] };
    return findLocalCandidates(actual.underlay, listenPort, tunnel).map(formatEndpoint);
  }

  /** Requests paths to the peers with these addresses. */
  #want(addresses: readonly string[]): void {
    const evaluation = this.#evaluation;
    if (evaluation === null) return;
    const isUsed = new Set(addresses.map((each) => `${each}`));
    const busy = new Set([...this.#attempts.keys(), ...(this.#paths ?? []).map(({ peer }) => Number(peer))]);
    const now = this.#now();
    const isDue = (id: number) => now >= (this.#requests.get(id)?.nextAt ?? 0);
    const wanted = [...this.#peers.values()]
      .filter(({ id, address }) => !busy.has(id) && isUsed.has(address) && isDue(id))
      .map(({ id }) => id)
      .slice(0, Math.max(0, mostPairs - busy.size));
    for (const id of wanted) {
      const count = (this.#requests.get(id)?.count ?? 0) + 1;
      const pause = Math.min(retry.baseMs * 2 ** (count - 1), retry.capMs) * (0.8 + 0.4 * Math.random());
      this.#requests.set(id, { count, nextAt: now + pause });
    }
    if (wanted.length > 0) void this.#signal({ wanted, candidates: this.#candidates(evaluation) });
  }

  async #try(evaluation: Evaluation, message: TryMessage): Promise<void> {
    const peer = this.#peers.get(Number(message.peer));
    // The other side has lost a path that this host still uses.
    await this.#handle({ event: 'return', peer: message.peer });
    if (peer === undefined || this.#paths === null || this.#attempts.has(peer.id) || this.#attempts.size >= mostPairs)
      return;
    if (message.endpoints.length === 0)
      return this.#recorder.attempted(peer.id, message, { own: listOwn(evaluation), tried: [], outcome: 'blocked' });
    const attempt = this.#attempt(evaluation, peer, message).finally(() => this.#attempts.delete(peer.id));
    this.#attempts.set(peer.id, attempt);
    await attempt;
  }

  async #attempt(evaluation: Evaluation, peer: PathPeer, message: TryMessage): Promise<void> {
    const { actual, desired, state } = evaluation;
    const { attempt } = message;
    const own = listOwn(evaluation);
    const run = {
      ...{ link: this.#link, mtu: desired.config.mtu, additions: this.#additions, roundTrip: this.#roundTrip },
      probesFrom: this.#probesFrom(desired),
      underlay: actual.underlay,
      tunnel: { range: state.membership.map.cidr, routes: desired.routes },
    };
    try {
      const { provenBy, tried } = await runAttempt(this.#tools, peer, message, run, this.#ending.signal);
      const outcome = provenBy === null ? 'failed' : 'proven';
      const facts = { interface: this.#link, peer: peer.name, outcome, tried };
      this.#tools.log.debug(facts, 'an attempt at a direct path ended');
      if (provenBy === null) {
        await this.#signal({ failed: [{ peer: peer.id, attempt, tried: [...tried] }] });
      } else {
        await this.#handle({ event: 'proven', peer: peer.id, attempt, by: provenBy });
        await this.#signal({ proven: [{ peer: peer.id, attempt }] });
      }
      this.#recorder.attempted(peer.id, message, { own, tried, outcome });
    } catch (error) {
      if (!this.#ending.signal.aborted) throw error;
    }
  }

  async #handle(event: PathEvent): Promise<void> {
    if (this.#paths === null) return;
    const { paths, actions } = handlePathEvent(this.#paths, event, this.#now());
    this.#paths = paths;
    this.#wake();
    for (const action of actions) await this.#apply(action);
  }

  async #apply(action: PathAction): Promise<void> {
    const peer = this.#peers.get(Number(action.peer));
    const evaluation = this.#evaluation;
    if (peer === undefined || evaluation === null) return;
    try {
      if (action.do === 'probe') return void this.#probe(peer, evaluation);
      if (action.do === 'forget') return await this.#tools.host.apply(removeTrial(this.#link, peer));
      const isDirect = action.do === 'switch';
      const others = (this.#paths ?? []).flatMap(({ peer: id }) =>
        id === peer.id ? [] : (this.#peers.get(Number(id)) ?? []),
      );
      // Without the lock: the agreed moment does not wait for a pass, which leaves the peer alone.
      await this.#tools.host.apply(
        isDirect ? switchToPath(this.#link, peer) : switchToRelay(this.#link, peer, evaluation, others),
      );
      const facts = { interface: this.#link, peer: peer.name };
      if (isDirect) this.#tools.log.info(facts, 'a peer is reached directly');
      else
        this.#tools.log.info(
          { ...facts, why: action.why ?? 'the peer returned' },
          'a peer is reached through the relay',
        );
      this.#trigger();
      this.#requests.delete(peer.id);
      if (!isDirect) this.#destinations.hurry();
      const why = action.do === 'return' ? action.why : null;
      this.#recorder.switched(peer.id, isDirect ? 'direct' : 'relayed', why);
      if (!isDirect && why !== null) void this.#signalEnd(evaluation, peer.id, why);
    } catch (error) {
      if (!(error instanceof CpnError)) throw error;
      this.#tools.log.warn(
        { interface: this.#link, peer: peer.name, error: error.message },
        'a path could not be changed',
      );
    }
  }

  /** A path that stopped answering may be possible again soon; after a move, from the new place. */
  async #signalEnd(evaluation: Evaluation, peer: number, why: PathEnd): Promise<void> {
    const again = why === 'lost' ? { wanted: [peer], candidates: this.#candidates(evaluation) } : {};
    await this.#signal({ ended: [{ peer, why }], ...again });
    if (why !== 'moved') return;
    this.#moved.add(peer);
    this.#trigger();
  }

  /** Without an answer, or a way to get one, the path ends. Others do not wait for it. */
  async #probe(peer: PathPeer, { desired }: Evaluation): Promise<void> {
    const { host } = this.#tools;
    const from = this.#probesFrom(desired);
    let isAnswered = false;
    try {
      isAnswered =
        from === null
          ? await host.isTcpReachable(peer.address, probeMs)
          : ((await host.probeSize?.(peer.probeAddress, { bytes: probeBytes, count: 1, from }, probeMs)) ?? false);
    } catch (error) {
      expectCpnError(error);
    }
    await this.#handle({ event: 'probed', peer: peer.id, isAnswered });
  }

  #probesFrom({ probeAddress }: Evaluation['desired']) {
    return probeAddress && { address: probeAddress.address, link: this.#link };
  }

  /** Observes the paths for as long as there are any. */
  async #watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const next = nextMoment(this.#paths ?? [], this.#now());
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      if (next === null) await woken;
      else await Promise.race([woken, this.#tools.sleep(Math.max(0, next - this.#now()), signal)]);
      if (signal.aborted) return;
      if (next !== null && this.#now() >= next) await this.#observe();
    }
  }

  async #observe(): Promise<void> {
    const traffic = await readTraffic(this.#tools, this.#link);
    const peers = [...this.#peers.values()].flatMap(({ id, publicKey }) => {
      const counters = traffic.get(publicKey);
      return counters === undefined ? [] : [[id, counters] as const];
    });
    await this.#handle({ event: 'observed', peers: new Map(peers) });
  }

  async #signal(signals: PathSignals): Promise<void> {
    if (this.#evaluation === null) return;
    const roundTrip = await signalPaths(this.#tools, this.#evaluation.state, signals, this.#ending.signal);
    if (roundTrip !== null) this.#roundTrip = Math.min(roundTrip, 2 * this.#roundTrip);
  }

  #now(): number {
    return this.#tools.monotonic() * 1000;
  }
}

/** The endpoints of this host before NAT. */
function listOwn({ actual }: Evaluation): readonly SocketEndpoint[] {
  const { listenPort = null } = actual.device ?? {};
  return listenPort === null ? [] : actual.underlay.addresses.map((host) => ({ host, port: listenPort }));
}
