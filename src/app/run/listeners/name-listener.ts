import { expectCpnError } from '../../../core/errors/index.ts';
import type { NetworkMap } from '../../../core/map/model.ts';
import { assignLabels, type PeerLabels } from '../../../core/names/hosts-label.ts';
import {
  type DnsFailure,
  type DomainServers,
  type ForwardedDomains,
  isReserved,
} from '../../../core/names/split-dns.ts';
import { answer, buildZones, indexZones, type Question, type Zones } from '../../../core/names/zone.ts';
import type { Address } from '../../../core/net/cidr.ts';
import type { NameServer } from '../../../host/host.ts';
import type { Pass } from '../../reconcile/pass.ts';
import type { Tools } from '../../tools.ts';
import { DomainFailures } from '../domain-failures.ts';
import type { PassListener } from '../pass-listener.ts';
import { TransitionLogger } from '../transition-logger.ts';

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
  /** The address of this host from which it sends queries. */
  #source: Address | null = null;
  readonly #failures: DomainFailures;
  /** The failures in the notes; null for those of an earlier daemon. */
  #noted: string | null = null;
  /** In the notes; undefined for that of an earlier daemon. */
  #taken: Address | null | undefined;
  /** Undefined if the resolver does not use this server. */
  #afterwards: DomainServers | null | undefined;

  /**
   * @param onChange called once names are served, because the resolver can then use them, and if
   *   servers of a domain begin or cease to fail
   */
  constructor(tools: Pick<Tools, 'host' | 'log' | 'store' | 'monotonic'>, link: string, onChange: () => void) {
    this.#tools = tools;
    this.#link = link;
    this.#onChange = onChange;
    this.#failures = new DomainFailures(tools, onChange);
    const messages = { begins: 'the names of peers are not served', ends: 'the names of peers are served again' };
    this.#transitions = new TransitionLogger(tools.log, { interface: link }, messages);
  }

  async onPass({ evaluation }: Pass): Promise<void> {
    const served = evaluation?.desired.served;
    // A resolver that does not reply keeps its settings, and continues to query this server.
    if (!served && evaluation?.actual.dns === null) return;
    this.#afterwards = this.#hasServed ? served?.afterwards : undefined;
    await this.#noteFailures(served?.forwarded ?? []);
    if (!served) {
      await this.#noteTaken(null);
      return this.#stop();
    }
    const { membership, labels } = evaluation.state;
    this.#forwarded = served.forwarded;
    this.#build(membership.map, labels, served.label);
    this.#source = evaluation.desired.config.address.address;
    const hasServed = this.#server !== null;
    await this.#start(served.address, this.#source);
    if (!hasServed && this.#server !== null && evaluation.actual.dns?.program === 'unbound') await this.#retryUnbound();
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

  /** An unbound without remote control queries this server later. */
  async #retryUnbound(): Promise<void> {
    try {
      await this.#tools.host.retryUnbound?.();
    } catch (error) {
      expectCpnError(error);
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
    const forwarded = this.#findForwarded(question.name.toLowerCase());
    if (forwarded === undefined) return found;
    const { domain, servers } = forwarded;
    const source = this.#source;
    // Reverse zones are no domains of the network, and have no state.
    if (isReserved(domain) || source === null) return { servers };
    return { servers, onReply: (failure: DnsFailure | null) => this.#failures.follow(forwarded, failure, source) };
  }

  async #noteFailures(forwarded: readonly ForwardedDomains[]): Promise<void> {
    const dnsFailures = this.#failures.read(forwarded);
    const text = JSON.stringify(dnsFailures);
    if (text === this.#noted) return;
    await this.#tools.store.amendNotes(this.#link, { dnsFailures });
    this.#noted = text;
  }

  /** The longest domain that contains the name. */
  #findForwarded(name: string): { readonly domain: string; readonly servers: readonly Address[] } | undefined {
    const [longest] = this.#forwarded
      .flatMap(({ domains, servers }) => domains.map((domain) => ({ domain, servers })))
      .filter(({ domain }) => name === domain || name.endsWith(`.${domain}`))
      .toSorted((one, other) => other.domain.length - one.domain.length);
    return longest;
  }

  async #stop(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    await server?.close();
  }
}
