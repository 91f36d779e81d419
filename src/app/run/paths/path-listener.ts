import type { PeerMessage } from '../../../contract/network.ts';
import { parseAddress } from '../../../core/net/cidr.ts';
import { formatEndpoint, type SocketEndpoint } from '../../../core/net/endpoint.ts';
import type { TryMessage } from '../../../core/paths/attempt-state.ts';
import type { PathEnd } from '../../../core/paths/direct-paths.ts';
import { findLocalCandidates } from '../../../core/paths/local-candidates.ts';
import type { Joined } from '../../../store/state/state.ts';
import type { Evaluation } from '../../reconcile/evaluate-network.ts';
import type { Pass } from '../../reconcile/pass.ts';
import { isJoined } from '../../select.ts';
import type { Tools } from '../../tools.ts';
import { CoalescedWork } from '../coalescing.ts';
import { readTraffic } from '../health/renew-peers.ts';
import type { PassListener } from '../pass-listener.ts';
import { DestinationWatcher } from './destination-watcher.ts';
import { ObservedEndpoints } from './observed-endpoints.ts';
import { findPathPeers, keepsSession, type PathPeer, probesFrom, removeTrial } from './path-peer.ts';
import { PathRecorder } from './path-recorder.ts';
import { PathSignals } from './path-signals.ts';
import { PathsInUse } from './paths-in-use.ts';
import { RequestSchedule } from './request-schedule.ts';
import { type AttemptResult, runAttempt } from './run-attempt.ts';
import { UnprobedPaths } from './unprobed-paths.ts';

/** The most attempts and paths of a host at once, as in the contract. */
const mostPairs = 32;
/** In 2000::/3, and of no network (RFC 3849): the default route decides. */
const anyIpv6 = parseAddress('2001:db8::1');
/** The most connectors that receive a packet, so that they observe this host. */
const mostObservers = 8;
/** Milliseconds from the proof of a path until the control plane names the moment of its switch. */
const expectedMs = 1_500;
/** The most endpoints in one request, as in the contract. */
const mostObserved = 64;

type AttemptParameters = Parameters<typeof runAttempt> extends [unknown, ...infer Rest] ? Rest : never;

interface RunningAttempt {
  readonly ended: Promise<void>;
  /** After a change of a key, or for a peer that left the network. */
  readonly abort: () => void;
}

/**
 * Follows the direct paths of one network: requests them for peers that this host exchanges packets
 * with, tries them when the control plane sends candidates, switches at the agreed moment, and
 * returns to the relay when a path ends. Passes recognize the paths in WireGuard's table.
 */
export class PathListener implements PassListener {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #trigger: () => void;
  readonly #renewWait: () => void;
  readonly #destinations: DestinationWatcher;
  readonly #observed = new ObservedEndpoints();
  readonly #recorder: PathRecorder;
  readonly #signals: PathSignals;
  readonly #paths: PathsInUse;
  readonly #ending = new AbortController();
  readonly #attempts = new Map<number, RunningAttempt>();
  /** Milliseconds at which peers were added with an endpoint. */
  readonly #additions: number[] = [];
  /** Peers whose endpoints the control plane requested. */
  readonly #asked = new Set<number>();
  readonly #observing = new CoalescedWork(() => this.#stateObserved());
  /** Peers that await the endpoints of this host. */
  readonly #stateTo = new Set<number>();
  readonly #stating = new CoalescedWork(() => this.#stateCandidates());
  /** Peers whose paths ended when this host moved. */
  readonly #moved = new Set<number>();
  readonly #requests = new RequestSchedule(() => this.#now());
  readonly #unprobed = new UnprobedPaths(() => this.#now());
  #evaluation: Evaluation | null = null;
  /** True from a move to the next pass: the latest one observed another place. */
  #isStale = false;
  #onFresh = () => {};
  #peers: ReadonlyMap<number, PathPeer> = new Map();

  /**
   * @param trigger starts a pass
   * @param renewWait waits for messages on a new connection, as the one in use may be dead
   */
  constructor(tools: Tools, link: string, trigger: () => void, renewWait: () => void) {
    this.#tools = tools;
    this.#link = link;
    this.#trigger = trigger;
    this.#renewWait = renewWait;
    this.#recorder = new PathRecorder(tools, link);
    this.#signals = new PathSignals(
      tools,
      () => this.#evaluation,
      (evaluation) => this.#candidates(evaluation),
    );
    this.#paths = new PathsInUse(tools, link, {
      evaluation: () => this.#evaluation,
      peers: () => this.#peers,
      onGone: (peers, why) => {
        for (const peer of peers) this.#signals.end(peer, why);
      },
      onSwitch: (peer, to, why) => this.#onSwitch(peer, to, why),
    });
    this.#destinations = new DestinationWatcher(tools, link, (addresses) => this.#want(addresses));
  }

  onPass({ evaluation }: Pass): void {
    this.#evaluation = evaluation;
    this.#isStale = false;
    this.#onFresh();
    this.#onFresh = () => {};
    const before = this.#peers;
    this.#peers = evaluation === null ? new Map() : findPathPeers(evaluation);
    const keepsPath = (id: number) => keepsSession(before.get(id), this.#peers.get(id));
    this.#observed.note(evaluation?.actual.device?.peers ?? []);
    this.#destinations.follow(this.#peers.size > 0);
    for (const [id, { abort }] of this.#attempts) if (!keepsPath(id)) abort();
    this.#paths.resume(evaluation, keepsPath);
  }

  /** Returns to the relay: this host may have moved, and its peers may have an old endpoint. */
  move(): void {
    this.#requests.clear();
    this.#isStale = true;
    this.#renewWait();
    this.#signals.move();
    void this.#paths.handle({ event: 'moved' });
  }

  /** Requests paths from the new place, where connectors observe this host now. */
  arrive(): void {
    this.#signals.want(this.#moved);
    this.#moved.clear();
  }

  /** Does what the control plane's messages request, without delaying the caller. */
  receive(messages: readonly PeerMessage[]): void {
    for (const message of messages) void this.#receive(message);
  }

  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#ending.abort());
    await Promise.all([this.#destinations.run(signal), this.#signals.run(signal), this.#paths.run(signal)]);
    await Promise.all([...this.#attempts.values()].map(({ ended }) => ended));
    await this.#recorder.settle();
  }

  async #receive({ kind, data }: PeerMessage): Promise<void> {
    if (kind === 'probe') return;
    if (kind === 'observe') {
      for (const peer of data.peers) this.#asked.add(peer);
      return this.#observing.request();
    }
    if (kind === 'candidates') {
      for (const peer of data.peers) this.#stateTo.add(peer);
      return this.#stating.request();
    }
    const evaluation = await this.#readEvaluation();
    if (evaluation === null) return;
    if (!(await this.#readOptions(evaluation)).directPaths) {
      if (kind === 'try') await this.#signals.send({ declined: [Number(data.peer)] });
      return;
    }
    if (kind === 'try') return this.#try(evaluation, data);
    if (kind === 'return') return this.#paths.handle({ event: 'return', peer: data.peer });
    return this.#paths.handle({ event: 'switch', ...data, roundTrip: this.#signals.roundTrip });
  }

  /** States the endpoints of this host in one request for all peers that await them meanwhile. */
  async #stateCandidates(): Promise<void> {
    const evaluation = await this.#readEvaluation();
    const peers = [...this.#stateTo].slice(0, mostPairs);
    for (const peer of peers) this.#stateTo.delete(peer);
    if (this.#stateTo.size > 0) this.#stating.request();
    if (evaluation === null || this.#ending.signal.aborted) return;
    const candidates = await this.#candidates(evaluation);
    await this.#signals.send(candidates === null ? { declined: peers } : { candidates });
  }

  /** States the endpoints of all peers that were named meanwhile in one request. */
  async #stateObserved(): Promise<void> {
    if (this.#evaluation === null || this.#ending.signal.aborted) return;
    const peers = [...this.#asked].slice(0, mostObserved);
    for (const peer of peers) this.#asked.delete(peer);
    if (this.#asked.size > 0) this.#observing.request();
    this.#observed.note([...(await readTraffic(this.#tools, this.#link)).values()]);
    await this.#signals.send({ observed: this.#observed.state(this.#evaluation, peers) });
  }

  /**
   * The endpoints of this host; null if it takes no direct paths. The connectors observe the one of
   * now by a packet.
   */
  async #candidates(evaluation: Evaluation): Promise<string[] | null> {
    const { actual, desired, state, taken } = evaluation;
    const { directPaths, localCandidates } = await this.#readOptions(evaluation);
    if (!directPaths) return null;
    const observers = state.membership.map.peers.filter(
      ({ type, endpoint }) => type === 'connector' && endpoint !== null,
    );
    for (const { address } of observers.slice(0, mostObservers)) await this.#tools.host.triggerHandshake(address);
    const { listenPort = null } = actual.device ?? {};
    if (listenPort === null || !localCandidates) return [];
    const tunnel = { range: state.membership.map.cidr, routes: [...taken, ...desired.routes] };
    const source6 = await this.#tools.host.sourceAddress(anyIpv6);
    return findLocalCandidates(actual.underlay, listenPort, tunnel, source6).map(formatEndpoint);
  }

  /** The latest evaluation; after a move, the next one. */
  async #readEvaluation(): Promise<Evaluation | null> {
    if (this.#isStale) {
      const before = this.#onFresh;
      await new Promise<void>((resolve) => {
        this.#onFresh = () => {
          before();
          resolve();
        };
      });
    }
    return this.#evaluation;
  }

  /** The options of now: another process may have changed them since the last pass. */
  async #readOptions({ state }: Evaluation): Promise<Joined['options']> {
    const saved = await this.#tools.store.read(this.#link).catch(() => null);
    return saved !== null && isJoined(saved) ? saved.options : state.options;
  }

  /** Requests paths to the peers with these addresses. Returns true if it requests one. */
  #want(addresses: readonly string[]): boolean {
    const evaluation = this.#evaluation;
    if (evaluation === null) return false;
    const isUsed = new Set(addresses.map((each) => `${each}`));
    const busy = new Set([...this.#attempts.keys(), ...this.#paths.ids]);
    const wanted = [...this.#peers.values()]
      .filter(({ id, address }) => !busy.has(id) && isUsed.has(address) && this.#requests.isDue(id))
      .map(({ id }) => id)
      .slice(0, Math.max(0, mostPairs - busy.size));
    for (const id of wanted) this.#requests.note(id);
    if (wanted.length > 0) void this.#request(wanted, evaluation);
    return wanted.length > 0;
  }

  async #request(wanted: readonly number[], evaluation: Evaluation): Promise<void> {
    const candidates = await this.#candidates(evaluation);
    if (candidates === null || (await this.#signals.send({ wanted: [...wanted], candidates }))) return;
    this.#signals.want(wanted);
  }

  async #try(evaluation: Evaluation, message: TryMessage): Promise<void> {
    const peer = this.#peers.get(Number(message.peer));
    // The other side has lost a path that this host still uses.
    await this.#paths.handle({ event: 'return', peer: message.peer });
    if (peer === undefined || this.#paths.isUnknown || this.#attempts.has(peer.id) || this.#attempts.size >= mostPairs)
      return;
    if (message.endpoints.length === 0) {
      const { own, peer: other } = message.nats ?? {};
      const isBlocked = own === 'symmetric' || other === 'symmetric';
      const outcome = message.declined ? 'declined' : isBlocked ? 'blocked' : 'no-endpoints';
      if (outcome === 'no-endpoints') this.#requests.hurry(peer.id);
      return this.#recorder.attempted(peer.id, message, { own: listOwn(evaluation), tried: [], outcome });
    }
    const gone = new AbortController();
    const signal = AbortSignal.any([this.#ending.signal, gone.signal]);
    const ended = this.#attempt(evaluation, peer, message, signal).finally(() => this.#attempts.delete(peer.id));
    this.#attempts.set(peer.id, { ended, abort: () => gone.abort() });
    await ended;
  }

  async #attempt(evaluation: Evaluation, peer: PathPeer, message: TryMessage, signal: AbortSignal): Promise<void> {
    const { actual, desired, state } = evaluation;
    const { attempt } = message;
    const own = listOwn(evaluation);
    const run = {
      ...{ link: this.#link, mtu: desired.config.mtu, additions: this.#additions, roundTrip: this.#signals.roundTrip },
      probesFrom: probesFrom(this.#link, desired),
      underlay: actual.underlay,
      tunnel: { range: state.membership.map.cidr, routes: desired.routes },
    };
    try {
      const { provenBy, tried } = await this.#runAttempt(peer, message, run, signal);
      const outcome = provenBy === null ? 'failed' : 'proven';
      const facts = { interface: this.#link, peer: peer.name, outcome, tried };
      this.#tools.log.debug(facts, 'an attempt at a direct path ended');
      if (provenBy === null) {
        await this.#signals.send({ failed: [{ peer: peer.id, attempt, tried: [...tried] }] });
      } else {
        await this.#paths.handle({ event: 'proven', peer: peer.id, attempt, by: provenBy });
        await this.#signals.send({ proven: [{ peer: peer.id, attempt }] });
        void this.#expectSwitch(peer.id);
      }
      this.#recorder.attempted(peer.id, message, { own, tried, outcome });
    } catch (error) {
      if (!signal.aborted) throw error;
      if (this.#ending.signal.aborted) return;
      // The next attempt has new keys, and need not wait for the backoff of this one.
      const ended = [{ peer: peer.id, why: 'moved' as const }];
      await this.#signals.send({ ended, failed: [{ peer: peer.id, attempt, tried: [] }] });
      this.#requests.forget(peer.id);
    }
  }

  /** The reply with the moment of the switch may be lost on a connection that died unnoticed. */
  async #expectSwitch(peer: number): Promise<void> {
    await this.#tools.sleep(expectedMs, this.#ending.signal);
    if (this.#paths.isWaiting(peer) && !this.#ending.signal.aborted) this.#renewWait();
  }

  /** A handshake proves no path to a peer that answered nothing over the last one. */
  async #runAttempt(...[peer, message, run, signal]: AttemptParameters): Promise<AttemptResult> {
    const result = await runAttempt(this.#tools, peer, message, run, signal);
    if (result.provenBy === 'probe') this.#unprobed.clear(peer.id);
    if (result.provenBy !== 'handshake' || this.#unprobed.accept(peer.id)) return result;
    await this.#tools.host.apply(removeTrial(this.#link, peer));
    const tried = result.tried.map(({ endpoint, outcome }) => {
      return { endpoint, outcome: outcome === 'reached' ? ('handshake' as const) : outcome };
    });
    return { provenBy: null, tried };
  }

  #onSwitch({ id }: PathPeer, to: 'direct' | 'relayed', why: PathEnd | null): void {
    this.#trigger();
    this.#requests.forget(id);
    this.#recorder.switched(id, to, why);
    if (to === 'relayed') this.#unprobed.end(id, why);
    this.#destinations.hurry();
    if (to === 'direct') this.#signals.settle(id);
    if (why === null) return;
    if (why === 'lost' || why === 'moved') this.#renewWait();
    this.#signals.end(id, why);
    // A path that stopped answering may be possible again soon; after a move, from the new place.
    if (why === 'lost') this.#signals.want([id]);
    if (why === 'moved') this.#moved.add(id);
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
