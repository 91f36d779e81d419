import type { DnsFailure, ForwardedDomains } from '../../core/names/split-dns.ts';
import type { Address } from '../../core/net/cidr.ts';
import type { Tools } from '../tools.ts';

/** Without another query, a server that failed may have recovered. */
const expirySeconds = 600;
/** Fewer queries that fail are no reason to query the domain itself. */
const leastFailed = 3;
const leastSeconds = 10;
/** The shortest time between two queries for a domain itself. A query takes up to 4 s. */
const pauseSeconds = 5;

/** A domain and its servers. */
interface Served {
  readonly domain: string;
  readonly servers: readonly Address[];
}

/** Queries that failed since the last answer for the domain, with times in seconds. */
interface Failed extends Served {
  count: number;
  readonly first: number;
  last: number;
  /** When this host last queried the domain itself. */
  queried: number | null;
  failure: DnsFailure | null;
}

/**
 * Finds the domains whose servers fail. Any program can send queries that a server does not answer,
 * so failed queries only make this host query the domain itself, and that query decides.
 */
export class DomainFailures {
  readonly #tools: Pick<Tools, 'host' | 'monotonic'>;
  readonly #onChange: () => void;
  readonly #failed = new Map<string, Failed>();

  constructor(tools: Pick<Tools, 'host' | 'monotonic'>, onChange: () => void) {
    this.#tools = tools;
    this.#onChange = onChange;
  }

  /** Follows a query for a name of the domain. `failure` is null after an answer. */
  follow({ domain, servers }: Served, failure: DnsFailure | null, source: Address): void {
    if (failure === null) {
      this.#end(domain);
      return;
    }
    const now = this.#tools.monotonic();
    const known = this.#failed.get(domain) ?? { count: 0, first: now, last: now, queried: null, failure: null };
    const failed: Failed = Object.assign(known, { domain, servers, count: known.count + 1, last: now });
    this.#failed.set(domain, failed);
    if (failed.count < leastFailed || now - failed.first < leastSeconds) return;
    if (failed.queried !== null && now - failed.queried < pauseSeconds) return;
    failed.queried = now;
    void this.#query(failed, source);
  }

  /** Returns the failures by domain, of these alone. */
  read(forwarded: readonly ForwardedDomains[]): Record<string, DnsFailure> {
    const since = this.#tools.monotonic() - expirySeconds;
    for (const { domain, servers, last } of this.#failed.values()) {
      const isServed = forwarded.some(
        (each) => each.domains.includes(domain) && each.servers.join() === servers.join(),
      );
      if (last < since || !isServed) this.#failed.delete(domain);
    }
    const found = [...this.#failed.values()].flatMap(({ domain, failure }): [string, DnsFailure][] =>
      failure === null ? [] : [[domain, failure]],
    );
    return Object.fromEntries(found.toSorted(([one], [other]) => (one < other ? -1 : 1)));
  }

  async #query(failed: Failed, source: Address): Promise<void> {
    const { domain, servers } = failed;
    const failure = await this.#tools.host.queryDomain(servers, domain, source);
    // A name was answered meanwhile, or the servers changed.
    if (this.#failed.get(domain) !== failed) return;
    const isChanged = failed.failure !== failure;
    failed.failure = failure;
    if (failure === null) this.#failed.delete(domain);
    if (isChanged) this.#onChange();
  }

  #end(domain: string): void {
    const failed = this.#failed.get(domain);
    this.#failed.delete(domain);
    if (failed !== undefined && failed.failure !== null) this.#onChange();
  }
}
