import type { PublicKey } from '../../../core/crypto/keys.ts';
import { isFresh } from '../../../core/health/peer-health.ts';
import type { ActualPeer } from '../../../core/host-state/actual.ts';
import { hasPathTo, namePlace } from '../../../core/host-state/underlay.ts';
import type { Peer } from '../../../core/map/model.ts';
import { hostPrefix } from '../../../core/net/cidr.ts';
import type { HostEvent } from '../../../host/host.ts';
import type { Evaluation } from '../../reconcile/evaluate-network.ts';
import type { Pass } from '../../reconcile/pass.ts';
import { secondsNow, type Tools } from '../../tools.ts';
import { readTraffic, renewPeers } from '../health/renew-peers.ts';
import type { PassListener, ResetCause } from '../pass-listener.ts';

/** The most peers that are probed; the others receive one packet. */
const mostProbed = 64;
/** Milliseconds for an answer. Then a handshake is forced: peers learn the endpoint within 2 s. */
const deadline = 700;
/**
 * Bytes of an initiation (148), a response (92) and a keepalive (32). After two crossing
 * handshakes, each end may have a session that the other lacks: only these arrive, and no data.
 * WireGuard itself notices after 5 to 15 s.
 */
const handshakeBytes = 148 + 92 + 32;
/** Seconds between info messages while the default route flaps. */
const quiet = 30;

/**
 * Sends a packet through each tunnel in use as soon as the underlay changes: any authenticated
 * packet gives a peer the new endpoint. Without an answer, a handshake is forced.
 */
export class RoamingListener implements PassListener {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #onMove: () => void;
  readonly #onProbed: () => void;
  #evaluation: Evaluation | null = null;
  #place: string | null = null;
  #isDue = false;
  #loggedAt = Number.NEGATIVE_INFINITY;
  #wake = () => {};

  /**
   * @param onMove called as soon as this host may have moved, or its uplink changed in any way
   * @param onProbed called when the peers in use have its new endpoint, or were sent to at least
   */
  constructor(tools: Tools, link: string, onMove: () => void, onProbed: () => void = () => {}) {
    this.#tools = tools;
    this.#link = link;
    this.#onMove = onMove;
    this.#onProbed = onProbed;
  }

  /** After a wake, peers may have an earlier endpoint: they are probed after the next pass. */
  reset(cause: ResetCause): void {
    if (cause === 'wake') this.#probeNext();
  }

  #probeNext(): void {
    this.#isDue = true;
    this.#onMove();
  }

  /**
   * Urgent: the default route or an uplink changed. A new default route may mean another place,
   * even with the same addresses; one that goes may come back elsewhere.
   */
  onEvent({ isDefault, kind, link, removed }: HostEvent): boolean {
    const isUplink = link !== null && this.#evaluation?.actual.underlay.uplinks.includes(link) === true;
    const isUrgent = isDefault === true || isUplink;
    if (isDefault && !removed && link !== this.#link) this.#probeNext();
    else if ((removed || kind === 'link') && isUrgent) this.#onMove();
    return isUrgent;
  }

  onPass({ evaluation }: Pass): void {
    this.#evaluation = evaluation;
    const before = this.#place;
    this.#place = evaluation && namePlace(evaluation.actual.underlay);
    if (evaluation === null) this.#isDue = false;
    else if (before !== null && before !== this.#place) this.#probeNext();
    if (this.#isDue) this.#wake();
  }

  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#wake());
    while (!signal.aborted) {
      if (this.#isDue && this.#evaluation !== null) {
        this.#isDue = false;
        await this.#probe(this.#evaluation);
        this.#onProbed();
        continue;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async #probe(evaluation: Evaluation): Promise<void> {
    const { host, log } = this.#tools;
    const before = await readTraffic(this.#tools, this.#link);
    const found = this.#findPeers(evaluation, before);
    const sources = await Promise.all(found.map(([, { endpoint }]) => endpoint && host.sourceAddress(endpoint.host)));
    // A peer without a path keeps its session, which is still valid when the cable is back.
    const isReached = ({ endpoint }: ActualPeer) =>
      endpoint !== null && hasPathTo(endpoint.host, evaluation.actual.underlay);
    const peers = found.filter(([, peer], index) => sources[index] !== null && isReached(peer));
    if (peers.length === 0) return;
    const probed = peers.slice(0, mostProbed);
    const answering = Promise.all(probed.map(([{ address }]) => host.isTcpReachable(address, deadline)));
    for (const [{ address }] of peers.slice(mostProbed)) await host.triggerHandshake(address);
    const answers = await answering;
    const silent = probed.filter((_, index) => !answers[index]);
    const renewed = silent.length === 0 ? [] : await this.#renew(silent, before);
    const nameOf = ([{ name }]: FoundPeer) => name;
    const answered = probed.filter((_, index) => answers[index]).map(nameOf);
    const facts = { interface: this.#link, peers: peers.length, answered, renewed: renewed.map(nameOf) };
    const now = this.#tools.monotonic();
    const level = renewed.length === 0 && now - this.#loggedAt < quiet ? 'debug' : 'info';
    if (level === 'info') this.#loggedAt = now;
    log[level](facts, 'the underlay changed; the peers in use were probed');
  }

  /** The peers with a session or a keepalive and direct packets, connectors first. */
  #findPeers({ state, desired }: Evaluation, known: ReadonlyMap<PublicKey, ActualPeer>): FoundPeer[] {
    const now = secondsNow(this.#tools);
    const wanted = new Map(desired.config.peers.map((peer) => [peer.publicKey, peer]));
    const rank = ([{ type }]: FoundPeer) => (type === 'connector' ? 0 : 1);
    return state.membership.map.peers
      .flatMap((peer): FoundPeer[] => {
        const actual = known.get(peer.publicKey);
        const isDirect = wanted.get(peer.publicKey)?.allowedIps.includes(hostPrefix(peer.address)) ?? false;
        return actual !== undefined && isDirect && isInUse(actual, now) ? [[peer, actual]] : [];
      })
      .toSorted((one, other) => rank(one) - rank(other));
  }

  /** Forces a handshake with peers that sent no data either: a firewall may drop probe answers. */
  async #renew(
    silent: readonly FoundPeer[],
    before: ReadonlyMap<PublicKey, ActualPeer>,
  ): Promise<readonly FoundPeer[]> {
    const isSilent = new Set(silent.map(([{ publicKey }]) => publicKey));
    const renewed = await renewPeers(this.#tools, this.#link, (known) =>
      [...known.values()].filter(
        ({ publicKey, rxBytes, endpoint }) =>
          isSilent.has(publicKey) &&
          endpoint !== null &&
          rxBytes - (before.get(publicKey)?.rxBytes ?? rxBytes) <= handshakeBytes,
      ),
    );
    const keys = new Set(renewed.map(({ publicKey }) => publicKey));
    const found = silent.filter(([{ publicKey }]) => keys.has(publicKey));
    for (const [{ address }] of found) await this.#tools.host.triggerHandshake(address);
    return found;
  }
}

/** A peer of the map, and its entry in WireGuard. */
type FoundPeer = readonly [Peer, ActualPeer];

function isInUse({ endpoint, latestHandshake, keepalive }: ActualPeer, now: number): boolean {
  if (endpoint === null || latestHandshake === null) return false;
  return keepalive !== null || isFresh(latestHandshake, now);
}
