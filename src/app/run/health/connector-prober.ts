import type { PublicKey } from '../../../core/crypto/keys.ts';
import {
  isNew,
  isUncertain,
  needsHandshake,
  recordAnswer,
  recordClosed,
  recordHandshake,
  recordTime,
} from '../../../core/health/liveness.ts';
import { everyInService, everyOther, everyRound } from '../../../core/health/own-liveness.ts';
import { isFresh } from '../../../core/health/peer-health.ts';
import type { ActualPeer } from '../../../core/host-state/actual.ts';
import type { PeerFailure } from '../../../core/map/model.ts';
import { ownKeys } from '../../../core/map/own-peer.ts';
import { sameMembers } from '../../../core/util/same-data.ts';
import type { Pass } from '../../reconcile/pass.ts';
import { secondsNow, type Tools } from '../../tools.ts';
import { OwnConnector } from './own-connector.ts';
import {
  everyExpected,
  isAnswering,
  isDue,
  isOverdue,
  needsCounters,
  nextHeardOrder,
  type ProbedConnector,
  restoreConnector,
  updateConnectors,
} from './probed-connector.ts';
import { readTraffic, renewPeers } from './renew-peers.ts';

/** Milliseconds after which an answer no longer counts. */
const answerWithin = 2_000;
/** The shortest pause in seconds between two rounds. */
const leastRest = 0.1;

/**
 * Seconds after a move or a new key in which silence does not count: peers receive the endpoint or
 * key, or a handshake is forced. Moves within `betweenMoves` seconds are one: a flapping interface
 * hides no dead connector.
 */
const graceAfterMove = 5;
const betweenMoves = 15;

/** Probes the liveness of connectors through the tunnel, if another can take over. */
export class ConnectorProber {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #onChange: () => void;
  /** All connectors. One that is not probed now keeps its liveness for its next probe. */
  #connectors: readonly ProbedConnector[] = [];
  #probed: readonly ProbedConnector[] = [];
  readonly #own = new OwnConnector();
  /** The last reported value of `failed`. */
  #reported = '[]';
  /** When this host last moved, in seconds. */
  #movedAt = Number.NEGATIVE_INFINITY;
  /** The keys as of the last pass; null before the first. */
  #ownKeys: readonly PublicKey[] | null = null;
  #wake = () => {};
  /** The handshakes that are being forced; null without any. */
  #renewing: Promise<void> | null = null;

  /** @param onChange called whenever `failed` changes */
  constructor(tools: Tools, link: string, onChange: () => void) {
    this.#tools = tools;
    this.#link = link;
    this.#onChange = onChange;
  }

  /** The connectors to avoid, with this host itself. */
  get failed(): PeerFailure[] {
    const others = this.#probed
      .filter(({ liveness }) => liveness.state !== 'trusted')
      .map(({ peer, liveness, heardOrder }) => ({
        peer: peer.id,
        back: liveness.state === 'back',
        ...(liveness.state === 'silent' && heardOrder !== null && { heard: heardOrder }),
      }));
    return [...others, ...this.#own.failed];
  }

  /** The round-trip times in milliseconds of the connectors that answer. */
  get rtts(): ReadonlyMap<PublicKey, number> {
    return new Map(
      this.#probed.flatMap(({ peer, rtt, liveness }): [PublicKey, number][] =>
        rtt === null || liveness.state === 'silent' ? [] : [[peer.publicKey, rtt]],
      ),
    );
  }

  /** Records that this host may have moved: its peers may not have its new endpoint yet. */
  move(): void {
    const now = this.#tools.monotonic();
    if (now - this.#movedAt >= betweenMoves) this.#movedAt = now;
  }

  /** Probes this evaluation's connectors from now on; null (the network is down) has none. */
  follow(pass: Pass): void {
    const { evaluation } = pass;
    const keys = evaluation && ownKeys(evaluation.state);
    if (keys !== null && this.#ownKeys !== null && !sameMembers(keys, this.#ownKeys)) this.move();
    this.#ownKeys = keys;
    const wasCutOff = this.#connectors.some(({ isCutOff }) => isCutOff);
    this.#connectors = updateConnectors(this.#connectors, evaluation, secondsNow(this.#tools));
    // Silence did not count while this host was cut off, so a new grace period hides nothing.
    if (wasCutOff && !this.#connectors.some(({ isCutOff }) => isCutOff)) this.#movedAt = this.#tools.monotonic();
    this.#probed = this.#connectors.filter(({ isProbed }) => isProbed);
    this.#own.follow(pass);
    this.#reported = JSON.stringify(this.failed);
    this.#wake();
  }

  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#wake());
    let last = this.#tools.monotonic();
    while (!signal.aborted) {
      if (this.#probed.length === 0) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        last = this.#tools.monotonic();
        continue;
      }
      const now = this.#tools.monotonic();
      await this.#round(this.#probed, now - last);
      last = now;
      // On a busy machine, the round itself takes long.
      const rest = everyRound - (this.#tools.monotonic() - now);
      await this.#tools.sleep(1000 * Math.max(rest, leastRest), signal);
    }
    await this.#renewing;
  }

  async #round(probed: readonly ProbedConnector[], seconds: number): Promise<void> {
    for (const each of probed) each.probed += seconds;
    if (probed.some(needsCounters) || this.#own.isQuiet) await this.#readCounters(probed);
    this.#own.recordTime(seconds, this.#tools.uptime() - this.#tools.monotonic());
    const isMoving = this.#tools.monotonic() - this.#movedAt < graceAfterMove;
    for (const each of probed) {
      // Its liveness depends on the forced handshake, which may wait for a pass.
      if (each.begun === null) continue;
      each.hasOther = probed.some((other) => other !== each && isAnswering(other));
      // Before its first probe there is nothing to answer.
      const waited = each.probed === Number.POSITIVE_INFINITY ? 0 : seconds;
      const before = each.liveness.state;
      each.liveness = recordTime(each.liveness, { ...each, seconds: isMoving || each.isCutOff ? 0 : waited });
      const isSilentNow = before !== 'silent' && each.liveness.state === 'silent';
      if (isSilentNow) each.heardOrder = each.liveness.heard ? nextHeardOrder(probed) : null;
      if (isSilentNow) this.#own.noteSilent(each.peer.publicKey);
      const { answers, state } = each.liveness;
      const isClose = each.inService || each.isSharing;
      const isOften = isNew(each.liveness) || (isClose && answers && state !== 'silent');
      const isExpected = each.isNamedRelay && state === 'silent';
      each.every = isOften ? everyInService : isExpected ? everyExpected : everyOther;
      if (isDue(each)) this.#probe(each);
      each.begun += waited;
    }
    const overdue = probed.filter(isOverdue);
    if (overdue.length > 0 && this.#renewing === null) this.#renewing = this.#renew(overdue);
    const failed = JSON.stringify(this.failed);
    if (probed !== this.#probed || failed === this.#reported) return;
    this.#reported = failed;
    this.#onChange();
  }

  #probe(connector: ProbedConnector): void {
    connector.probed = 0;
    const begun = this.#tools.monotonic();
    void this.#tools.host.probeConnector(connector.peer.address, answerWithin).then((answer) => {
      if (answer === 'closed') {
        connector.liveness = recordClosed(connector.liveness);
        connector.heardOrder = null;
      }
      if (answer !== 'open') return;
      const took = 1000 * (this.#tools.monotonic() - begun);
      connector.rtt = connector.rtt === null ? took : connector.rtt + (took - connector.rtt) / 8;
      connector.liveness = recordAnswer(connector.liveness, 'answer');
      connector.rxBytes = null;
      this.#hear();
    });
  }

  #hear(): void {
    const unproven = this.#own.hear();
    for (const each of this.#probed) if (unproven.has(each.peer.publicKey)) restoreConnector(each);
  }

  /** Forces handshakes now: these connectors may not have this host's endpoint yet. */
  async #renew(overdue: readonly ProbedConnector[]): Promise<void> {
    for (const each of overdue) each.begun = null;
    const renewed = await renewPeers(this.#tools, this.#link, (known) =>
      overdue.flatMap((each) => {
        const peer = known.get(each.peer.publicKey);
        return peer !== undefined && this.#isRenewable(each, peer) ? [peer] : [];
      }),
    );
    this.#renewing = null;
    for (const each of overdue) {
      // If it answered meanwhile, its counters are not read until its state is uncertain.
      if (isNew(each.liveness) && renewed.some(({ publicKey }) => publicKey === each.peer.publicKey)) each.rxBytes = 0;
      each.begun = 0;
      each.liveness = recordHandshake(each.liveness, each);
      this.#probe(each);
    }
  }

  #isRenewable(connector: ProbedConnector, peer: ActualPeer): boolean {
    const { liveness } = connector;
    if (peer.endpoint === null || !isNew(liveness)) return false;
    return needsHandshake(liveness, connector) || !this.#hasSession(peer);
  }

  #hasSession({ latestHandshake }: ActualPeer): boolean {
    return isFresh(latestHandshake, secondsNow(this.#tools));
  }

  /** A firewall may drop probes, but any other traffic proves as much. */
  async #readCounters(probed: readonly ProbedConnector[]): Promise<void> {
    const traffic = await readTraffic(this.#tools, this.#link);
    if (this.#own.compare(traffic.values())) this.#hear();
    for (const each of probed) {
      // The counters of a peer that is removed and added start at 0.
      if (each.begun === null) continue;
      const before = each.rxBytes;
      const observed = traffic.get(each.peer.publicKey);
      const rxBytes = observed?.rxBytes ?? 0;
      each.hasSession = observed !== undefined && this.#hasSession(observed);
      each.rxBytes = isUncertain(each.liveness, each) ? rxBytes : null;
      if (before !== null && rxBytes > before) each.liveness = recordAnswer(each.liveness, 'traffic');
    }
  }
}
