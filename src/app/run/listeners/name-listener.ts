import { expectCpnError } from '../../../core/errors/index.ts';
import type { NetworkMap } from '../../../core/map/model.ts';
import { assignLabels, type PeerLabels } from '../../../core/names/hosts-label.ts';
import type { DomainServers, ForwardedDomains } from '../../../core/names/split-dns.ts';
import { answer, buildZones, indexZones, type Question, type Zones } from '../../../core/names/zone.ts';
import type { Address } from '../../../core/net/cidr.ts';
import type { NameServer } from '../../../host/host.ts';
import type { Pass } from '../../reconcile/pass.ts';
import type { Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';
import { TransitionLogger } from '../transition-logger.ts';

/** Without another query, a server that did not reply may have recovered. */
const silentSeconds = 600;
/** One name that a server does not answer shows nothing: any program can send a query for it. */
const leastUnanswered = 3;
const leastSilentSeconds = 10;

/** Queries without a reply since the last reply of a server, with times in seconds. */
interface Unanswered {
  readonly count: number;
  readonly first: number;
  readonly last: number;
}

/**
 * Serves the names of a network to the resolver of this host, at an address of the host,
 * and forwards queries for the domains behind routes.
 */
export class NameListener implements PassListener {
  readonly #tools: Pick<Tools, 'host' | 'store' | 'monotonic'>;
  readonly #link: string;
  readonly #onChange: () => void;
  readonly #transitions: TransitionLogger;
  #isEnded = false;
  #hasServed = false;
  #server: (NameServer & { readonly address: Address }) | null = null;
  #built: { readonly map: NetworkMap; readonly labels: readonly PeerLabels[]; readonly label: string } | null = null;
  #zones: Zones = new Map();
  #forwarded: readonly ForwardedDomains[] = [];
  readonly #unanswered = new Map<Address, Unanswered>();
  /** The silent servers in the notes; null for those of an earlier daemon. */
  #noted: string | null = null;
  /** In the notes; undefined for that of an earlier daemon. */
  #taken: Address | null | undefined;
  /** Undefined if the resolver does not use this server. */
  #afterwards: DomainServers | null | undefined;

  /**
   * @param onChange called once names are served, because the resolver can then use them, and if
   *   servers of a domain stop or begin to reply
   */
  constructor(tools: Pick<Tools, 'host' | 'log' | 'store' | 'monotonic'>, link: string, onChange: () => void) {
    this.#tools = tools;
    this.#link = link;
    this.#onChange = onChange;
    const messages = { begins: 'the names of peers are not served', ends: 'the names of peers are served again' };
    this.#transitions = new TransitionLogger(tools.log, { interface: link }, messages);
  }

  async onPass({ evaluation }: Pass): Promise<void> {
    const served = evaluation?.desired.served;
    // A resolver that does not reply keeps its settings, and continues to query this server.
    if (!served && evaluation?.actual.dns === null) return;
    this.#afterwards = this.#hasServed ? served?.afterwards : undefined;
    await this.#noteSilent(served?.forwarded ?? []);
    if (!served) {
      await this.#noteTaken(null);
      return this.#stop();
    }
    const { membership, labels } = evaluation.state;
    this.#forwarded = served.forwarded;
    this.#build(membership.map, labels, served.label);
    await this.#start(served.address, evaluation.desired.config.address.address);
  }

  async run(signal: AbortSignal): Promise<void> {
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    this.#isEnded = true;
    await this.#stop();
  }

  /** Without this server, the resolver would send it queries in vain. */
  async onEnd(): Promise<void> {
    const [link, dns, changes] = [this.#link, this.#afterwards, []];
    if (dns === undefined) return;
    try {
      await this.#tools.host.apply(
        dns === null ? { do: 'revert-dns', link, changes } : { do: 'set-dns', link, dns, changes },
      );
    } catch (error) {
      // The next daemon sets them, if the interface is still there.
      expectCpnError(error);
    }
  }

  /** Building takes time in proportion to the peers. */
  #build(map: NetworkMap, held: readonly PeerLabels[], label: string): void {
    const { map: lastMap, labels: lastLabels, label: lastLabel } = this.#built ?? {};
    if (lastMap?.peers === map.peers && lastMap.cidr === map.cidr && lastLabels === held && lastLabel === label) return;
    const addresses = new Map(map.peers.map(({ id, address }) => [id, address]));
    const hosts = assignLabels(map.peers, held).flatMap(({ peer, labels }) => {
      const address = addresses.get(peer);
      return address === undefined ? [] : [{ address, labels }];
    });
    this.#zones = indexZones(buildZones({ label, range: map.cidr, hosts }));
    this.#built = { map, labels: held, label };
  }

  async #start(address: Address, source: Address): Promise<void> {
    if (this.#server?.address === address) return;
    await this.#stop();
    if (this.#isEnded) return;
    try {
      const server = await this.#tools.host.serveNames?.({ address, source }, (question) => this.#answer(question));
      this.#transitions.update(null);
      await this.#noteTaken(null);
      if (server === undefined) return;
      this.#server = { ...server, address };
      this.#hasServed = true;
      this.#onChange();
    } catch (error) {
      const failure = expectCpnError(error);
      this.#transitions.update(failure);
      await this.#noteTaken(failure.facts.code === 'EADDRINUSE' ? address : null);
    }
  }

  async #noteTaken(namesTaken: Address | null): Promise<void> {
    if (namesTaken === this.#taken) return;
    await this.#tools.store.amendNotes(this.#link, { namesTaken });
    this.#taken = namesTaken;
    // The resolver must not use the other program.
    if (namesTaken !== null) this.#onChange();
  }

  #answer(question: Question) {
    const found = answer(this.#zones, question);
    if (found.rcode !== 'REFUSED') return found;
    const servers = this.#findForwarded(question.name.toLowerCase());
    if (servers === undefined) return found;
    return { servers, onReply: (isAnswered: boolean) => this.#followReply(servers, isAnswered) };
  }

  #followReply(servers: readonly Address[], isAnswered: boolean): void {
    const areSilent = () => servers.every((server) => this.#isSilent(server));
    const [wereSilent, now] = [areSilent(), this.#tools.monotonic()];
    for (const server of servers) {
      const { count, first } = this.#unanswered.get(server) ?? { count: 0, first: now };
      if (isAnswered) this.#unanswered.delete(server);
      else this.#unanswered.set(server, { count: count + 1, first, last: now });
    }
    if (areSilent() !== wereSilent) this.#onChange();
  }

  #isSilent(server: Address): boolean {
    const { count, first, last } = this.#unanswered.get(server) ?? { count: 0, first: 0, last: 0 };
    return count >= leastUnanswered && last - first >= leastSilentSeconds;
  }

  async #noteSilent(forwarded: readonly ForwardedDomains[]): Promise<void> {
    const used = new Set(forwarded.flatMap(({ servers }) => servers));
    const since = this.#tools.monotonic() - silentSeconds;
    for (const [server, { last }] of this.#unanswered)
      if (last < since || !used.has(server)) this.#unanswered.delete(server);
    const silentDns = [...this.#unanswered.keys()].filter((server) => this.#isSilent(server)).toSorted();
    if (silentDns.join() === this.#noted) return;
    await this.#tools.store.amendNotes(this.#link, { silentDns });
    this.#noted = silentDns.join();
  }

  /** The servers of the longest domain that contains the name. */
  #findForwarded(name: string): ForwardedDomains['servers'] | undefined {
    const [longest] = this.#forwarded
      .flatMap(({ domains, servers }) => domains.map((domain) => ({ domain, servers })))
      .filter(({ domain }) => name === domain || name.endsWith(`.${domain}`))
      .toSorted((one, other) => other.domain.length - one.domain.length);
    return longest?.servers;
  }

  async #stop(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    await server?.close();
  }
}
