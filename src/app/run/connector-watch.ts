import type { ActualPeer } from '../../core/actual.ts';
import { CpnError } from '../../core/errors.ts';
import { isFresh } from '../../core/health.ts';
import {
  changePace,
  isContested,
  isDoubtful,
  isNew,
  type Liveness,
  noteHeard,
  noteTime,
  renewAfter,
  unknownLiveness,
} from '../../core/liveness.ts';
import type { Failure, Peer } from '../../core/model.ts';
import type { Survey } from '../survey.ts';
import { secondsNow, type Tools } from '../tools.ts';
import { readTraffic } from './read-traffic.ts';

/** Seconds between two questions to a connector in service or not heard yet, and to one that stands by, is dead, or never answers. */
const everyInService = 0.5;
const everyOther = 2.5;
/** Milliseconds after which an answer is none any more. */
const answerWithin = 2_000;

/** A connector that is watched. */
interface Watched {
  peer: Peer;
  readonly inService: boolean;
  liveness: Liveness;
  /** Seconds between two questions. */
  every: number;
  /** Seconds since the last one. */
  asked: number;
  /** Bytes received when it was first in doubt; null while it is not. */
  rxBytes: number | null;
  hasSession: boolean;
  /** Seconds since a handshake was begun by a question; null while another one is being forced. */
  begun: number | null;
}

/** Asks connectors through the tunnel, again and again, whether they live, where there is another to take over. */
export class ConnectorWatch {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #tell: () => void;
  #watched: readonly Watched[] = [];
  #told = '[]';
  #wake = () => {};
  /** Handshakes that are begun again; null while there are none. */
  #renewing: Promise<void> | null = null;

  /** @param tell is called whenever `failed` changes */
  constructor(tools: Tools, link: string, tell: () => void) {
    this.#tools = tools;
    this.#link = link;
    this.#tell = tell;
  }

  /** The connectors to avoid. */
  get failed(): Failure[] {
    return this.#watched
      .filter(({ liveness }) => liveness.state !== 'trusted')
      .map(({ peer, liveness }) => ({ peer: peer.id, back: liveness.state === 'back' }));
  }

  /** Watches the connectors of this survey from now on; those of a network that was taken down (null) not at all. */
  follow(seen: Survey | null): void {
    const before = new Map(this.#watched.map((each) => [each.peer.publicKey, each]));
    this.#watched = findConnectors(seen).map(({ peer, inService }) => {
      const known = before.get(peer.publicKey);
      if (known?.inService === inService) {
        // The same one still: its answer may be on its way.
        known.peer = peer;
        return known;
      }
      const liveness = known ? changePace(known.liveness) : unknownLiveness(stateOf(peer, seen));
      return {
        peer,
        inService,
        liveness,
        every: everyOther,
        asked: everyOther,
        rxBytes: null,
        hasSession: false,
        begun: 0,
      };
    });
    this.#told = JSON.stringify(this.failed);
    this.#wake();
  }

  /** Goes on until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#wake());
    let last = this.#tools.monotonic();
    while (!signal.aborted) {
      if (this.#watched.length === 0) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        last = this.#tools.monotonic();
        continue;
      }
      const now = this.#tools.monotonic();
      await this.#look(this.#watched, now - last);
      last = now;
      await this.#tools.sleep(everyInService * 1000, signal);
    }
    await this.#renewing;
  }

  async #look(watched: readonly Watched[], seconds: number): Promise<void> {
    for (const each of watched) each.asked += seconds;
    if (watched.some(needsCounters)) await this.#readCounters(watched);
    for (const each of watched) {
      // It is judged by that handshake, which may have to wait for a pass.
      if (each.begun === null) continue;
      const hasOther = watched.some((other) => other !== each && isHeard(other));
      each.liveness = noteTime(each.liveness, { ...each, seconds, hasOther });
      const { answers, state } = each.liveness;
      const isOften = isNew(each.liveness) || (each.inService && answers && state !== 'silent');
      each.every = isOften ? everyInService : everyOther;
      if (isDue(each)) this.#ask(each);
      each.begun += seconds;
    }
    const overdue = watched.filter(isOverdue);
    if (overdue.length > 0 && this.#renewing === null) this.#renewing = this.#renew(overdue);
    const failed = JSON.stringify(this.failed);
    if (watched !== this.#watched || failed === this.#told) return;
    this.#told = failed;
    this.#tell();
  }

  #ask(watched: Watched): void {
    watched.asked = 0;
    void this.#tools.host.answers(watched.peer.address, answerWithin).then((answered) => {
      if (!answered) return;
      watched.liveness = noteHeard(watched.liveness, 'answer');
      watched.rxBytes = null;
    });
  }

  /**
   * Begins a handshake with these at once: they may not have known this host yet, and WireGuard tries only every 5 s. Not beside a pass,
   * which may change the same peers.
   */
  async #renew(overdue: readonly Watched[]): Promise<void> {
    for (const each of overdue) each.begun = null;
    try {
      await this.#tools.store.lock(async () => {
        const known = await readTraffic(this.#tools, this.#link);
        const renewable = overdue.filter((each) => this.#isRenewable(each, known.get(each.peer.publicKey)));
        const peers = renewable.flatMap(({ peer }) => known.get(peer.publicKey) ?? []);
        if (peers.length === 0) return;
        await this.#tools.host.apply({ do: 'renew-peers', link: this.#link, peers, changes: [] });
        for (const each of renewable) each.rxBytes = 0;
      });
    } catch (error) {
      // WireGuard goes on by itself.
      if (!(error instanceof CpnError)) throw error;
    }
    this.#renewing = null;
    for (const each of overdue) {
      each.begun = 0;
      this.#ask(each);
    }
  }

  #isRenewable({ liveness, inService }: Watched, peer: ActualPeer | undefined): boolean {
    if (peer === undefined || peer.endpoint === null) return false;
    return isNew(liveness) && (isContested(liveness, inService) || !this.#hasSession(peer));
  }

  #hasSession({ latestHandshake }: ActualPeer): boolean {
    return isFresh(latestHandshake, secondsNow(this.#tools));
  }

  /** What a firewall does to our questions is not known; whatever else comes from a peer proves as much as an answer. */
  async #readCounters(watched: readonly Watched[]): Promise<void> {
    const traffic = await readTraffic(this.#tools, this.#link);
    for (const each of watched) {
      // Counters of a peer that is put in again begin at 0.
      if (each.begun === null) continue;
      const before = each.rxBytes;
      const seen = traffic.get(each.peer.publicKey);
      const rxBytes = seen?.rxBytes ?? 0;
      each.hasSession = seen !== undefined && this.#hasSession(seen);
      each.rxBytes = isDoubtful(each.liveness, each) ? rxBytes : null;
      if (before !== null && rxBytes > before) each.liveness = noteHeard(each.liveness, 'traffic');
    }
  }
}

/** What is on disk of an earlier time. */
function stateOf({ id }: Peer, seen: Survey | null): Liveness['state'] {
  const failure = seen?.state.failed.find((each) => each.peer === id);
  return failure ? (failure.back ? 'back' : 'silent') : 'trusted';
}

function isDue({ asked, every }: Watched): boolean {
  // A timer is never exact.
  return asked >= every - everyInService / 2;
}

function isHeard({ liveness }: Watched): boolean {
  return liveness.heard && liveness.state !== 'silent';
}

/** True when a handshake is to be forced: there was none for so long, or none that counts. */
function isOverdue({ liveness, inService, hasSession, begun }: Watched): boolean {
  if (!isNew(liveness) || begun === null || begun < renewAfter) return false;
  return !hasSession || isContested(liveness, inService);
}

/** To look at them costs a process: of one that may be dead at once, of others with each question. */
function needsCounters(watched: Watched): boolean {
  return isDoubtful(watched.liveness, watched) && (watched.liveness.answers || isDue(watched));
}

/**
 * The connectors that this host exchanges packets with directly, where it matters which of them lives: where there are several,
 * or where this host is one itself, and hands on what it cannot deliver.
 */
function findConnectors(seen: Survey | null): { peer: Peer; inService: boolean }[] {
  if (seen === null) return [];
  const { state, desired } = seen;
  const reached = new Map(desired.config.peers.map((peer) => [peer.publicKey, peer]));
  const connectors = state.membership.map.peers.filter(
    (peer) => peer.type === 'connector' && reached.has(peer.publicKey),
  );
  const matters = connectors.length > 1 || state.enrollment.type === 'connector';
  if (!matters) return [];
  // Beside its own address one in service carries routes, or the range that it relays to.
  return connectors.map((peer) => ({ peer, inService: (reached.get(peer.publicKey)?.allowedIps.length ?? 0) > 1 }));
}
