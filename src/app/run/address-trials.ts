import { type AddressTrial, beginTrial, judgeTrial } from '../../core/health/address-trial.ts';
import { isRenewed } from '../../core/health/peer-health.ts';
import type { ActualPeer } from '../../core/host-state/actual.ts';
import { addressesOf } from '../../core/names/resolved-names.ts';
import type { Address } from '../../core/net/cidr.ts';
import type { Evaluation } from '../reconcile/evaluate-network.ts';
import { secondsNow, type Tools } from '../tools.ts';

/** The observations of the peers of a name. */
export interface NameUse {
  readonly name: string;
  readonly heardAt: Address | null;
  /** The address in use, if all peers of the name are silent at it, else null. */
  readonly silentAt: Address | null;
  /** All usable addresses, including the one in use. */
  readonly candidates: readonly Address[];
}

/** Tracks how the peers of each name with several addresses answer at the address in use. */
export class AddressTrials {
  readonly #tools: Pick<Tools, 'monotonic' | 'now'>;
  readonly #trials = new Map<string, AddressTrial>();
  /** Addresses that were silent since the last answer, by name. */
  readonly #silent = new Map<string, Set<Address>>();
  /** The address that last answered in this underlay, by name. */
  readonly #answeredLast = new Map<string, Address>();
  /** True if this host may have moved: earlier handshakes then prove nothing. */
  #hasMoved = false;

  constructor(tools: Pick<Tools, 'monotonic' | 'now'>) {
    this.#tools = tools;
  }

  /** Discards earlier silence and answers. */
  reset(): void {
    this.#trials.clear();
    this.#silent.clear();
    this.#answeredLast.clear();
    this.#hasMoved = true;
  }

  /** The addresses that are not in use because peers were silent there. */
  get silent(): readonly Address[] {
    return [...this.#silent.values()].flatMap((addresses) => [...addresses]);
  }

  /**
   * Judges each name. An address that the resolver no longer returns is not tried: it may now be
   * another host's.
   *
   * @param answers the last replies of the resolver, as far as there are any
   * @returns the uses of the names; `lookIn` is the number of seconds until the next observation,
   *   or null if the next pass is soon enough
   */
  look(
    evaluation: Evaluation,
    answers: ReadonlyMap<string, readonly Address[]>,
  ): { readonly uses: readonly NameUse[]; readonly lookIn: number | null } {
    const at = { now: this.#tools.monotonic(), wall: secondsNow(this.#tools) };
    const named = groupPeers(evaluation);
    for (const name of this.#trials.keys()) if (!named.has(name)) this.#forget(name);
    const uses: NameUse[] = [];
    const looks: number[] = [];
    for (const [name, { addresses, usable, peers }] of named) {
      const answer = answers.get(name) ?? addresses;
      const candidates = usable.filter((each) => answer.includes(each));
      const [address] = addresses;
      if (address === undefined || peers.length === 0) continue;
      const earlier = this.#trials.get(name);
      const isSame = earlier?.address === address;
      const needsAnswer = this.#hasMoved || earlier !== undefined;
      const failures = earlier?.failures ?? 0;
      const trial = isSame ? earlier : beginTrial(address, peers, { needsAnswer, failures });
      const last = this.#answeredLast.get(name);
      const answeredLast = last !== undefined && candidates.includes(last) ? last : null;
      const judged = judgeTrial(trial, peers, { ...at, choices: candidates.length, answeredLast });
      this.#trials.set(name, judged.trial);
      if (judged.trial.failures === 0) this.#silent.delete(name);
      if (judged.lookIn !== null && candidates.length > 1) looks.push(judged.lookIn);
      const heard = judged.trial.needsAnswer
        ? []
        : findHeard(peers, at.wall).filter((each) => addresses.includes(each));
      const heardAt = heard.includes(address) ? address : (heard[0] ?? null);
      if (heardAt !== null) this.#answeredLast.set(name, heardAt);
      uses.push({ name, heardAt, silentAt: judged.isSilent ? address : null, candidates });
    }
    this.#hasMoved = false;
    return { uses, lookIn: looks.length === 0 ? null : Math.min(...looks) };
  }

  /** Records that a name's peers are silent at an address; `next` replaces it, null if none can. */
  fail(name: string, address: Address, next: Address | null): void {
    const trial = this.#trials.get(name);
    if (trial === undefined) return;
    this.#trials.set(name, { ...trial, unanswered: null, failures: trial.failures + 1 });
    if (next === null) return;
    const silent = this.#silent.get(name) ?? new Set();
    silent.delete(next);
    this.#silent.set(name, silent.add(address));
  }

  #forget(name: string): void {
    this.#trials.delete(name);
    this.#silent.delete(name);
    this.#answeredLast.delete(name);
  }
}

function findHeard(peers: readonly ActualPeer[], wall: number): Address[] {
  return peers.flatMap(({ endpoint, latestHandshake }) =>
    endpoint !== null && isRenewed(latestHandshake, wall) ? [endpoint.host] : [],
  );
}

interface NamedPeers {
  /** The address in use is first. */
  readonly addresses: readonly Address[];
  readonly usable: readonly Address[];
  /** The peers with the name as their endpoint, as WireGuard has them. */
  readonly peers: readonly ActualPeer[];
}

/** The names with several addresses. */
function groupPeers({ state, desired, actual }: Evaluation): ReadonlyMap<string, NamedPeers> {
  const present = new Map(actual.device?.peers.map((peer) => [peer.publicKey, peer]));
  const wanted = new Map(desired.config.peers.map((peer) => [peer.publicKey, peer.endpoint]));
  const named = Map.groupBy(state.membership.map.peers, ({ endpoint }) => endpoint?.host ?? '');
  const groups = [...named].flatMap(([name, members]): [string, NamedPeers][] => {
    const addresses = addressesOf(name, desired.resolved);
    if (addresses.length < 2) return [];
    const peers = members.flatMap(({ publicKey }) => {
      const peer = present.get(publicKey);
      return peer !== undefined && wanted.get(publicKey) != null ? [peer] : [];
    });
    return [[name, { addresses, usable: addresses.filter((each) => !desired.avoided.has(each)), peers }]];
  });
  return new Map(groups);
}
