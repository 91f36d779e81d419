import { isDefaultRoute, lengthOf, type Prefix } from '../../core/net/cidr.ts';
import { PrefixIndex } from '../../core/net/prefix-index.ts';
import { readPrefix } from '../read-address.ts';
import type { ListedRoutes } from './ip/large-tables.ts';

/** Milliseconds for which a listing is reused while the host's events are followed. */
const listingMs = 60_000;
/** Milliseconds until a complete read, in case the large tables are small by then. */
const largeMs = 600_000;

/**
 * Caches the routes of a host with large tables, and filters route changes. Each observation
 * queries the relevant routes; a listing lasts for a minute, or until an event may outdate it.
 */
export class RouteCache {
  #listings = new Map<string, { readonly listing: ListedRoutes; readonly at: number }>();
  readonly #concerns = new Map<string, PrefixIndex<Prefix>>();
  /** By interface: true if it takes all traffic. Then any route of another program matters. */
  readonly #isFull = new Map<string, boolean>();
  #largeSince: number | null = null;
  #isFollowed = false;

  /** True if routes must be read one by one. */
  get isLarge(): boolean {
    return this.#largeSince !== null && performance.now() - this.#largeSince < largeMs;
  }

  noteSize(isLarge: boolean): void {
    this.#largeSince = isLarge ? performance.now() : null;
  }

  /** Enables reuse of listings while events invalidate them. Without events, nothing is reused. */
  follow(isFollowed: boolean): void {
    this.#isFollowed = isFollowed;
    this.invalidate();
  }

  async list(link: string, read: () => Promise<ListedRoutes>): Promise<ListedRoutes> {
    const known = this.#listings.get(link);
    if (this.#isFollowed && known && performance.now() - known.at < listingMs) return known.listing;
    const at = performance.now();
    const listings = this.#listings;
    const listing = await read();
    // A change during the read may be missing from the listing.
    if (listings === this.#listings) listings.set(link, { listing, at });
    return listing;
  }

  /** Drops all listings after a change on the host that they may contain. */
  invalidate(): void {
    this.#listings = new Map();
  }

  /** Sets the prefixes whose routes matter to the network of an interface. */
  concern(link: string, prefixes: readonly Prefix[]): void {
    this.#isFull.set(link, prefixes.some(isDefaultRoute));
    const others = prefixes.filter((prefix) => !isDefaultRoute(prefix));
    this.#concerns.set(link, new PrefixIndex(others.map((prefix) => [prefix, prefix])));
  }

  /**
   * True if a line of `ip -oneline monitor` reports a route that matters:
   * - a default route, or a half of it
   * - a throw route, or a route into one of our interfaces
   * - a route that overlaps a prefix of concern
   *
   * The filter must be cheap: a full routing table changes up to a thousand times a second.
   */
  isRelevant(line: string): boolean {
    const [, kind = 'unicast', destination = ''] = routeLine.exec(line) ?? [];
    if (destination === '' || this.#concerns.size === 0) return true;
    if (destination === 'default' || kind === 'throw') return true;
    const [, device = ''] = / dev (\S+)/.exec(line) ?? [];
    if (this.#concerns.has(device)) return true;
    const prefix = readPrefix(destination);
    if (lengthOf(prefix) <= 1) return true;
    const isDaemons = daemonProtocols.has(/ proto (\S+)/.exec(line)?.[1] ?? '');
    if (!isDaemons && [...this.#isFull.values()].includes(true)) return true;
    return [...this.#concerns.values()].some((index) => index.findOverlap(prefix) !== null);
  }
}

/** `Deleted 10.9.0.0/16 via …`, `default dev …`, `unreachable fd05::/64 dev …`. */
const routeLine =
  /^(?:Deleted )?(?:([a-z]{1,20}) )?(default|(?!\d{1,10}: )[\da-f]{0,4}[.:][\da-f.:]{1,45}(?:\/\d{1,3})?) /;

/** Protocols of routing daemons: names from rt_protos of iproute2, and numbers. */
const daemonProtocols: ReadonlySet<string> = new Set(
  'gated mrt zebra bird babel openr bgp isis ospf rip eigrp 8 10 11 12 42 99 186 187 188 189 192'.split(' '),
);
