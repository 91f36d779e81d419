import type { ActualPeer } from '../../../src/core/host-state/actual.ts';
import { parseEndpoint, type SocketEndpoint } from '../../../src/core/net/endpoint.ts';
import { advanceAttempt, beginAttempt, trialKeepalive } from '../../../src/core/paths/attempt.ts';
import type { AttemptAction, ProbeResult, TriedCandidate } from '../../../src/core/paths/attempt-state.ts';
import { keyPair, prefix, underlay } from '../samples.ts';

/**
 * How a router treats a host. `preserving` keeps the port, and lets in what comes from where the host sent. `symmetric`
 * has a port for each destination. `open` lets everything in. `rejecting` is preserving, but an early packet makes it
 * choose another port toward that sender.
 */
export type Router = 'open' | 'preserving' | 'symmetric' | 'rejecting' | 'blocked';

export interface SimulatedHost {
  readonly router: Router;
  readonly canProbe: boolean;
  /** Endpoints that the other side is given. */
  readonly candidates: readonly string[];
}

export interface PairOptions {
  readonly hosts: readonly [SimulatedHost, SimulatedHost];
  /** True if both are in one LAN, and reach each other's LAN endpoint. */
  readonly isSameLan: boolean;
  /** Milliseconds in one direction. */
  readonly delay: number;
  /** Milliseconds by which the second host starts later. */
  readonly skew: number;
  /** Milliseconds that an action takes, by turns. */
  readonly lags: readonly number[];
  /** Bytes that a full-size probe may have at most passes; false if only small packets pass. */
  readonly isWide: boolean;
}

export interface Ended {
  /** Of each host. */
  readonly proven: readonly ('probe' | 'handshake' | null)[];
  readonly tried: readonly (readonly TriedCandidate[])[];
  /** Initiations and responses of each host before its handshake, by destination. */
  readonly packets: readonly ReadonlyMap<string, number>[];
  /** Milliseconds from the start until both ended. */
  readonly took: number;
}

export const lanOf = (at: number) => `192.168.1.${at + 10}:51820`;
export const outsideOf = (at: number) => `203.0.113.${at + 10}:51820`;

type Message =
  | { readonly is: 'initiation'; readonly id: number }
  | { readonly is: 'response'; readonly to: number }
  | {
      readonly is: 'data';
      readonly session: number;
      readonly echo?: 'request' | 'reply';
      readonly size?: 'small' | 'full';
    };

/** WireGuard's view of the other peer, as far as handshakes need it. */
interface PeerState {
  endpoint: string | null;
  /** Its initiation in flight; an initiation of the other side defeats it. */
  sent: number | null;
  /** The session of an initiation that it answered, until data confirms it. */
  pending: number | null;
  session: number | null;
  handshake: number | null;
  rx: number;
  tx: number;
}

const sizes = { initiation: 148, response: 92, data: 32 } as const;

class Pair {
  readonly #options: PairOptions;
  readonly #queue: { at: number; run: () => void }[] = [];
  readonly #peers: [PeerState | null, PeerState | null] = [null, null];
  /** Destinations of each router's host, and the port that it has toward each. */
  readonly #flows: [Map<string, string>, Map<string, string>] = [new Map(), new Map()];
  readonly #spoiled: [Set<string>, Set<string>] = [new Set(), new Set()];
  readonly packets = [new Map<string, number>(), new Map<string, number>()];
  readonly #echoes: [Set<string>, Set<string>] = [new Set(), new Set()];
  readonly #lags: number[];
  #now = 0;
  #ids = 0;

  constructor(options: PairOptions) {
    this.#options = options;
    this.#lags = [...options.lags];
  }

  run(): Ended {
    const proven: ('probe' | 'handshake' | null)[] = [null, null];
    const tried: (readonly TriedCandidate[])[] = [[], []];
    let took = 0;
    for (const at of [0, 1] as const) {
      this.#start(at, (action) => {
        if (action.do === 'prove') proven[at] = action.by;
        if (action.do === 'give-up') {
          tried[at] = action.tried;
          this.#peers[at] = null;
        }
        took = Math.max(took, this.#now - 300);
      });
    }
    for (let next = this.#take(); next !== undefined; next = this.#take()) {
      this.#now = next.at;
      if (this.#now > 60_000) throw new Error('the attempt does not end');
      next.run();
    }
    return { proven, tried, packets: this.packets, took };
  }

  #take() {
    return this.#queue.pop();
  }

  #after(ms: number, run: () => void): void {
    const at = this.#now + ms;
    // The next event is the last one of the queue.
    const index = this.#queue.findLastIndex((each) => each.at > at);
    this.#queue.splice(index + 1, 0, { at, run });
  }

  #start(at: 0 | 1, onEnd: (action: AttemptAction) => void): void {
    const { hosts, skew } = this.#options;
    const around = { ...underlay, addresses: [], connected: [] };
    let attempt = beginAttempt(
      {
        ...{ peer: 1 - at, attempt: 1, endpoints: hosts[1 - at]?.candidates ?? [] },
        ...{ start_in_ms: 300 + (at === 1 ? skew : 0), first: at === 0 },
      },
      {
        ...{ now: 0, roundTrip: 0, canProbe: hosts[at].canProbe, underlay: around },
        tunnel: { range: prefix('10.77.0.0/24'), routes: [] },
      },
    );
    let timer = 0;
    const step = (probe?: ProbeResult) => {
      timer += 1;
      const mine = timer;
      const advanced = advanceAttempt(attempt, { now: this.#now, entry: this.#entry(at), ...(probe && { probe }) });
      attempt = advanced.attempt;
      const lag = advanced.actions.length === 0 ? 0 : this.#nextLag();
      this.#after(lag, () => {
        for (const action of advanced.actions) {
          if (action.do === 'renew') this.#renew(at, action.endpoint);
          else if (action.do === 'probe') this.#probe(at, step);
          else onEnd(action);
        }
      });
      const { nextAt } = advanced;
      if (nextAt === null) return;
      this.#after(Math.max(nextAt - this.#now, lag) + 1, () => {
        if (mine === timer) step();
      });
    };
    step();
  }

  #nextLag(): number {
    const lag = this.#lags.shift() ?? 0;
    this.#lags.push(lag);
    return lag;
  }

  #entry(at: 0 | 1): ActualPeer | null {
    const peer = this.#peers[at];
    if (peer === null) return null;
    return {
      publicKey: keyPair(1 - at + 1).publicKey,
      presharedKey: null,
      endpoint: peer.endpoint === null ? null : (parseEndpoint(peer.endpoint) as SocketEndpoint),
      allowedIps: [],
      keepalive: null,
      latestHandshake: peer.handshake,
      rxBytes: peer.rx,
      txBytes: peer.tx,
    };
  }

  #renew(at: 0 | 1, endpoint: SocketEndpoint | null): void {
    const text = endpoint === null ? null : `${endpoint.host}:${endpoint.port}`;
    const peer: PeerState = { endpoint: text, sent: null, pending: null, session: null, handshake: null, rx: 0, tx: 0 };
    this.#peers[at] = peer;
    if (text !== null) this.#initiate(at, peer);
    this.#keepAlive(at, peer);
  }

  #keepAlive(at: 0 | 1, peer: PeerState): void {
    this.#after(1_000 * trialKeepalive, () => {
      if (this.#peers[at] !== peer || this.#now > 30_000) return;
      if (peer.session !== null) this.#send(at, peer, { is: 'data', session: peer.session });
      this.#keepAlive(at, peer);
    });
  }

  #initiate(at: 0 | 1, peer: PeerState): void {
    this.#ids += 1;
    const id = this.#ids;
    peer.sent = id;
    this.#send(at, peer, { is: 'initiation', id });
    this.#after(5_000, () => {
      if (this.#peers[at] === peer && peer.sent === id) this.#initiate(at, peer);
    });
  }

  #probe(at: 0 | 1, step: (result: ProbeResult) => void): void {
    const peer = this.#peers[at];
    this.#echoes[at].clear();
    for (const size of ['small', 'full'] as const) {
      if (peer?.session != null) this.#send(at, peer, { is: 'data', session: peer.session, echo: 'request', size });
    }
    this.#after(700, () =>
      step(this.#echoes[at].has('full') ? 'full' : this.#echoes[at].has('small') ? 'small' : 'none'),
    );
  }

  #send(at: 0 | 1, peer: PeerState, message: Message): void {
    const to = peer.endpoint;
    if (to === null) return;
    peer.tx += sizes[message.is];
    if (message.is !== 'data') this.packets[at]?.set(to, (this.packets[at]?.get(to) ?? 0) + 1);
    if (message.is === 'data' && message.size === 'full' && !this.#options.isWide) return;
    const { isSameLan, delay } = this.#options;
    const other = (1 - at) as 0 | 1;
    if (to === lanOf(other)) {
      if (isSameLan) this.#after(1, () => this.#receive(other, message, lanOf(at)));
      return;
    }
    const from = this.#translate(at, to);
    if (from === null) return;
    this.#after(delay, () => {
      if (this.#letsIn(other, to, from)) this.#receive(other, message, from);
    });
  }

  /** The source of a packet after the router of its sender. */
  #translate(at: 0 | 1, to: string): string | null {
    const { router } = this.#options.hosts[at];
    if (router === 'blocked') return null;
    const flows = this.#flows[at];
    const isMoved = router === 'symmetric' || (router === 'rejecting' && this.#spoiled[at].has(to));
    const from = flows.get(to) ?? (isMoved ? `203.0.113.${at + 10}:${2000 + this.#ids}` : outsideOf(at));
    flows.set(to, from);
    return from;
  }

  #letsIn(at: 0 | 1, to: string, from: string): boolean {
    const { router } = this.#options.hosts[at];
    if (router === 'open') return to === outsideOf(at);
    if (this.#flows[at].get(from) === to) return true;
    if (!this.#flows[at].has(from)) this.#spoiled[at].add(from);
    return false;
  }

  #receive(at: 0 | 1, message: Message, from: string): void {
    const peer = this.#peers[at];
    if (peer === null) return;
    if (message.is === 'initiation') {
      peer.rx += sizes.initiation;
      Object.assign(peer, { endpoint: from, sent: null, pending: message.id });
      this.#send(at, peer, { is: 'response', to: message.id });
    } else if (message.is === 'response') {
      if (peer.sent !== message.to) return;
      peer.rx += sizes.response;
      Object.assign(peer, {
        endpoint: from,
        sent: null,
        session: message.to,
        handshake: 1 + Math.floor(this.#now / 1000),
      });
      this.#send(at, peer, { is: 'data', session: message.to });
    } else {
      if (peer.pending === message.session) {
        Object.assign(peer, { session: message.session, pending: null, handshake: 1 + Math.floor(this.#now / 1000) });
      } else if (peer.session !== message.session) return;
      peer.rx += sizes.data;
      peer.endpoint = from;
      if (message.echo === 'reply') this.#echoes[at].add(message.size ?? 'small');
      if (message.echo === 'request' && this.#options.hosts[at].canProbe) {
        this.#send(at, peer, { ...message, echo: 'reply' });
      }
    }
  }
}

/** Lets two hosts try to reach each other, and returns what became of it. */
export function runPair(options: PairOptions): Ended {
  return new Pair(options).run();
}
