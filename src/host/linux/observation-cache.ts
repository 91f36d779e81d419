import type { Actual, Device, Link, Underlay } from '../../core/host-state/actual.ts';
import { isKernelRule } from '../../core/host-state/policy-rule.ts';
import { memoizeLast } from '../../core/util/memo.ts';
import { OutputCache } from '../process/output-cache.ts';
import { dumpReader } from '../wireguard/dump.ts';
import { digestDump } from '../wireguard/watch-devices.ts';
import { type ShownByIp, shownReader } from './ip/show.ts';
import { findOnLink, findRoutes } from './link-routes.ts';
import type { OwnerCache } from './resolvers.ts';
import { RouteCache } from './route-cache.ts';
import { gatherUnderlay } from './underlay.ts';

/**
 * The cache of parsed tool output. Every observation runs the tools; what they print is parsed only as far as it differs from their
 * last output. With 10,000 peers that saves most of the time of a pass.
 */
export class ObservationCache {
  /** What `ip` printed. */
  readonly shown = new OutputCache();
  /** What `nft` printed of all rules. */
  readonly ruleset = new OutputCache();
  /** Routes of a host with large tables, and the prefixes for which a change of a route matters. */
  readonly routes = new RouteCache();
  /** The processes of local resolvers. */
  readonly stubOwners: OwnerCache = new Map();
  readonly #readShown = shownReader();
  readonly #links = new Map<string, LinkCache>();

  /** What belongs to one interface. */
  of(link: string): LinkCache {
    const known = this.#links.get(link) ?? new LinkCache(link, this.#readShown);
    this.#links.set(link, known);
    return known;
  }

  /** The digest of an interface's WireGuard table in an observation since the last call; undefined where there was none. */
  takeSeen(link: string): string | undefined {
    const cache = this.#links.get(link);
    const text = cache?.previous ?? null;
    if (cache === undefined || text === null) return undefined;
    cache.previous = null;
    return digestDump(link, text);
  }

  /** An interface that is gone had a private key, which is among what `wg` printed. */
  forget(link: string): void {
    this.#links.delete(link);
  }
}

/** What `ip` shows of one interface and around it. */
interface LinkView extends Pick<Actual, 'link' | 'routes' | 'onLink' | 'rules' | 'throwRoutes'> {
  readonly underlay: Omit<Underlay, 'resolvers' | 'stubs'>;
}

class LinkCache {
  /** What `wg` printed, and `nft` of our table. */
  readonly dump = new OutputCache();
  readonly table = new OutputCache();
  /** What `ip` printed of a host with large tables. */
  readonly large = new OutputCache();
  readonly readDump: (text: string) => Device = dumpReader();
  /** What `wg` last printed. */
  last: string | null = null;
  /** The same of the last observation, until the watch of devices takes it. */
  previous: string | null = null;
  /** Notes that what `wg` last printed is part of an observation. */
  settle(): void {
    this.previous = this.last;
  }

  /** Of the output of `ip`. */
  readonly readView: (text: string) => LinkView;

  constructor(name: string, readShown: (text: string) => ShownByIp) {
    this.readView = memoizeLast((text) => {
      const shown = readShown(text);
      return {
        link: findLink(shown, name),
        routes: findRoutes(shown, name),
        onLink: findOnLink(shown, name),
        throwRoutes: shown.throwRoutes,
        rules: shown.rules.filter((rule) => !isKernelRule(rule)),
        underlay: gatherUnderlay(name, shown),
      };
    });
  }
}

export type { LinkCache, LinkView };

function findLink({ links }: ShownByIp, name: string): Link | null {
  const link = links.find((each) => each.name === name);
  if (!link) return null;
  const { mtu, up, alias, master } = link;
  const isInVrf = links.some((each) => each.name === master && each.kind === 'vrf');
  const addresses = link.addresses.map(({ address, length }) => ({ address, length }));
  return { name, mtu, up, alias, addresses, ...(isInVrf && master !== null && { vrf: master }) };
}
