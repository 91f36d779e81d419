import type { Actual, Device, Link, Underlay } from '../../core/host-state/actual.ts';
import { isKernelRule } from '../../core/host-state/policy-rule.ts';
import { memoizeLast } from '../../core/util/memo.ts';
import { OutputCache } from '../process/output-cache.ts';
import { dumpReader } from '../wireguard/dump.ts';
import { digestDump } from '../wireguard/watch-devices.ts';
import type { OwnerCache } from './dns/resolvers.ts';
import { type ShownByIp, shownReader } from './ip/show.ts';
import { findOnLink, findRoutes } from './link-routes.ts';
import { RouteCache } from './route-cache.ts';
import { gatherUnderlay } from './underlay.ts';

/**
 * Caches parsed tool output. Every observation runs the tools, but parses only what differs from
 * their last output. With 10,000 peers this saves most of the time of a pass.
 */
export class ObservationCache {
  readonly shown = new OutputCache();
  /** Output of `nft` for all rules. */
  readonly ruleset = new OutputCache();
  /** The routes of a host with large tables, and the prefixes whose route changes matter. */
  readonly routes = new RouteCache();
  /** The processes that own the sockets of local resolvers. */
  readonly stubOwners: OwnerCache = new Map();
  /** The folder of settings that the local resolver reads; null without any. */
  resolverFolder: string | null = null;
  readonly #readShown = shownReader();
  readonly #links = new Map<string, LinkCache>();

  of(link: string): LinkCache {
    const known = this.#links.get(link) ?? new LinkCache(link, this.#readShown);
    this.#links.set(link, known);
    return known;
  }

  /** Returns the digest of a WireGuard dump that was observed since the last call, or undefined. */
  takeSeen(link: string): string | undefined {
    const cache = this.#links.get(link);
    const text = cache?.previous ?? null;
    if (cache === undefined || text === null) return undefined;
    cache.previous = null;
    return digestDump(link, text);
  }

  /** Drops the cache of a deleted interface: the output of `wg` contains its private key. */
  forget(link: string): void {
    this.#links.delete(link);
  }
}

/** The interface and its underlay, from the output of `ip`. */
interface LinkView extends Pick<Actual, 'link' | 'routes' | 'onLink' | 'rules' | 'throwRoutes'> {
  readonly underlay: Omit<Underlay, 'resolvers' | 'stubs'>;
  /** The names of all interfaces, by index. */
  readonly names: ReadonlyMap<number, string>;
}

class LinkCache {
  /** Output of `wg` for the interface, and of `nft` for our table. */
  readonly dump = new OutputCache();
  readonly table = new OutputCache();
  /** Output of `ip` on a host with large tables. */
  readonly large = new OutputCache();
  readonly readDump: (text: string) => Device = dumpReader();
  /** The last dump of `wg`. */
  last: string | null = null;
  /** The dump of the last observation, until the device watch takes it. */
  previous: string | null = null;
  /** Marks the last dump as part of an observation. */
  settle(): void {
    this.previous = this.last;
  }

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
        names: new Map(shown.links.map((each) => [each.index, each.name])),
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
