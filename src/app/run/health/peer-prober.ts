import type { ProbeResult } from '../../../contract/health.ts';
import type { PeerMessage } from '../../../contract/network.ts';
import type { PublicKey } from '../../../core/crypto/keys.ts';
import { CpnError } from '../../../core/errors/index.ts';
import { isFresh } from '../../../core/health/peer-health.ts';
import type { ActualPeer } from '../../../core/host-state/actual.ts';
import type { Peer } from '../../../core/map/model.ts';
import { hostPrefix } from '../../../core/net/cidr.ts';
import { accessOf } from '../../access.ts';
import type { Evaluation } from '../../reconcile/evaluate-network.ts';
import type { Pass } from '../../reconcile/pass.ts';
import { withExtensions } from '../../service-features.ts';
import { secondsNow, type Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';
import { readTraffic, renewPeers } from './renew-peers.ts';

/** Milliseconds for an answer to a TCP connection. A firewall may drop it. */
const tcpMs = 1_000;
/** Handshake attempts. A firewall that lets the tunnel work does not drop them. */
const handshakes = 2;
/**
 * Readings of WireGuard's table after each attempt, and milliseconds between them. On a busy
 * machine, readings take longer, and so does the wait.
 */
const readings = 11;
const pollMs = 100;
/** The contract's limit of peers in one report. */
const atOnce = 32;
const reportPatience = { deadlineMs: 5_000, attempts: 2 } as const;

/** A peer that receives packets directly. */
interface ProbedPeer {
  readonly peer: Peer & { readonly id: number };
  /** WireGuard's entry before the probe. */
  readonly before: ActualPeer;
}

/**
 * Probes peers whose connections the control plane lost, on its request, and reports the results.
 * Silence is reported only of a peer that answered recently, or has an endpoint and ever answered.
 */
export class PeerProber implements PassListener {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #onReported: (probes: readonly ProbeResult[]) => void;
  readonly #ending = new AbortController();
  #evaluation: Evaluation | null = null;
  readonly #asked = new Set<number>();
  #probing: Promise<void> | null = null;

  /** @param onReported receives the results that the control plane accepted */
  constructor(tools: Tools, link: string, onReported: (probes: readonly ProbeResult[]) => void = () => {}) {
    this.#tools = tools;
    this.#link = link;
    this.#onReported = onReported;
  }

  onPass({ evaluation }: Pass): void {
    this.#evaluation = evaluation;
  }

  async run(signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve());
      if (signal.aborted) resolve();
    });
    this.#ending.abort();
    await this.#probing;
  }

  /** Probes without delaying the caller. */
  receive(messages: readonly PeerMessage[]): void {
    for (const { kind, data } of messages) if (kind === 'probe') for (const peer of data.peers) this.#asked.add(peer);
    if (this.#asked.size > 0) this.#probing ??= this.#probeAsked().finally(() => (this.#probing = null));
  }

  async #probeAsked(): Promise<void> {
    while (this.#asked.size > 0 && !this.#ending.signal.aborted) {
      const asked = new Set([...this.#asked].slice(0, atOnce));
      for (const peer of asked) this.#asked.delete(peer);
      try {
        if (this.#evaluation !== null) await this.#probe(this.#evaluation, asked);
      } catch (error) {
        if (this.#ending.signal.aborted) return;
        if (!(error instanceof CpnError)) throw error;
        this.#tools.log.debug({ interface: this.#link, error: error.message }, 'probes could not be reported');
      }
    }
  }

  async #probe(evaluation: Evaluation, asked: ReadonlySet<number>): Promise<void> {
    const { state } = evaluation;
    const access = accessOf(state);
    const targets = findTargets(evaluation, asked, await readTraffic(this.#tools, this.#link));
    if (targets.length === 0 || access === null) return;
    const { answered, renewed } = await this.#findAnswering(targets);
    const probes = targets.flatMap(({ peer, before }) => {
      if (answered.has(peer.id)) return { peer: peer.id, answered: true };
      if (!renewed.has(peer.publicKey)) return [];
      const isTelling = isFresh(before.latestHandshake, secondsNow(this.#tools)) || peer.endpoint !== null;
      return before.latestHandshake !== null && isTelling ? { peer: peer.id, answered: false } : [];
    });
    this.#tools.log.debug({ interface: this.#link, probes }, 'probed peers for the control plane');
    if (probes.length === 0 || this.#ending.signal.aborted) return;
    await withExtensions(this.#tools, state, reportPatience, (service) =>
      service.report(access.network, state.membership.peer.id, access.token, { probes }, this.#ending.signal),
    );
    this.#onReported(probes);
  }

  async #findAnswering(targets: readonly ProbedPeer[]) {
    const { host, sleep } = this.#tools;
    const answered = new Set<number>();
    /** The silence of other peers proves nothing: the lock was taken, or they have no endpoint. */
    const renewed = new Set<PublicKey>();
    const tcp = targets.map(async ({ peer }) => {
      if (await host.isTcpReachable(peer.address, tcpMs)) answered.add(peer.id);
    });
    await Promise.all(tcp);
    const findSilent = () => targets.filter(({ peer }) => !answered.has(peer.id));
    const collect = async (isLife: (observed: ActualPeer, before: ActualPeer) => boolean) => {
      if (findSilent().length === 0) return;
      const traffic = await readTraffic(this.#tools, this.#link);
      for (const { peer, before } of findSilent()) {
        const observed = traffic.get(peer.publicKey);
        if (observed !== undefined && isLife(observed, before)) answered.add(peer.id);
      }
    };
    // Any packet from a peer counts as an answer.
    await collect(
      (observed, before) => observed.rxBytes > before.rxBytes || observed.latestHandshake !== before.latestHandshake,
    );
    for (let round = 0; round < handshakes && findSilent().length > 0; round += 1) {
      const peers = await renewPeers(this.#tools, this.#link, (known) =>
        findSilent().flatMap(({ peer }) => {
          const observed = known.get(peer.publicKey);
          return observed === undefined || observed.endpoint === null ? [] : [observed];
        }),
      );
      for (const { publicKey } of peers) renewed.add(publicKey);
      for (const { peer } of findSilent()) await host.triggerHandshake(peer.address);
      for (let reading = 0; reading < readings && findSilent().length > 0; reading += 1) {
        if (this.#ending.signal.aborted) return { answered, renewed };
        await sleep(pollMs, this.#ending.signal);
        await collect((observed) => observed.latestHandshake !== null && observed.rxBytes > 0);
      }
    }
    return { answered, renewed };
  }
}

/** Returns the peers among these that receive packets directly. */
function findTargets(
  { state, desired }: Evaluation,
  asked: ReadonlySet<number>,
  traffic: ReadonlyMap<PublicKey, ActualPeer>,
): readonly ProbedPeer[] {
  const direct = new Map(desired.config.peers.map(({ publicKey, allowedIps }) => [publicKey, allowedIps]));
  return state.membership.map.peers.flatMap((peer) => {
    const before = traffic.get(peer.publicKey);
    const isDirect = direct.get(peer.publicKey)?.includes(hostPrefix(peer.address)) ?? false;
    const { id } = peer;
    if (typeof id !== 'number' || !asked.has(id) || before === undefined || !isDirect) return [];
    return [{ peer: { ...peer, id }, before }];
  });
}
