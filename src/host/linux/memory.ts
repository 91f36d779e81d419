import { isDeepStrictEqual } from 'node:util';
import type { Actual, Device, HostsFile, Link, Route, Surroundings } from '../../core/actual.ts';
import type { Prefix } from '../../core/cidr.ts';
import { keepSame } from '../../core/keep-same.ts';
import { kernelProtocol } from '../../core/marks.ts';
import { perObject } from '../../core/per-object.ts';
import { KnownOutput } from '../known-output.ts';
import { dumpReader } from '../wg-dump.ts';
import { type Shown, shownReader } from './ip-show.ts';
import { gatherSurroundings, type Neighbours } from './surroundings.ts';

/**
 * What the last texts of the tools were read as. Every look asks the tools anew; where they say what they said before, to the letter,
 * what comes of it is the very object, so that neither its parsing nor what follows from it is done again. With 10,000 peers that is
 * most of what a pass costs.
 */
export class Memory {
  /** What `ip` printed. */
  readonly shown = new KnownOutput();
  readonly readShown: (text: string) => Shown = shownReader();
  /** What `nft` printed of all rules. */
  readonly ruleset = new KnownOutput();
  readonly #links = new Map<string, LinkMemory>();

  /** What belongs to one interface. */
  of(link: string): LinkMemory {
    const known = this.#links.get(link) ?? new LinkMemory(link);
    this.#links.set(link, known);
    return known;
  }

  /** An interface that is gone had a private key, which is among what `wg` printed. */
  forget(link: string): void {
    this.#links.delete(link);
  }
}

/** What a look at an interface brought. */
interface Look {
  readonly shown: Shown;
  readonly device: Device | null;
  readonly firewall: readonly string[] | null;
  readonly sysctls: Readonly<Record<string, string>>;
  readonly isSealed: boolean;
  readonly hosts: HostsFile | null;
  readonly neighbours: Neighbours;
}

export class LinkMemory {
  /** What `wg` printed, and `nft` of our table. */
  readonly dump = new KnownOutput();
  readonly table = new KnownOutput();
  readonly readDump: (text: string) => Device = dumpReader();
  readonly #describe: (look: Look) => Actual;
  readonly #surround: (shown: Shown) => (neighbours: Neighbours) => Surroundings;
  readonly #keepNeighbours = keepSame<Neighbours>(isDeepStrictEqual);

  constructor(link: string) {
    const keep = keepSame(sameLook);
    // What a tool says of the rest of the host is other than before less often than what WireGuard counts.
    this.#surround = perObject((shown: Shown) =>
      perObject((neighbours: Neighbours) => gatherSurroundings(link, shown, neighbours)),
    );
    const routesOf = perObject((shown: Shown) => findRoutes(shown, link));
    const onLinkOf = perObject((shown: Shown) => findOnLink(shown, link));
    const describe = perObject(({ shown, device, neighbours, ...rest }: Look): Actual => {
      const found = findLink(shown, link);
      return {
        ...rest,
        link: found,
        // A socket of that name may be one of an interface in another network namespace.
        device: found && device,
        routes: routesOf(shown),
        onLink: onLinkOf(shown),
        rules: shown.rules.filter(({ protocol }) => protocol !== kernelProtocol),
        surroundings: this.surround(shown, neighbours),
      };
    });
    this.#describe = (look) => describe(keep(look));
  }

  /** What surrounds the interface. */
  surround(shown: Shown, neighbours: Neighbours): Surroundings {
    return this.#surround(shown)(this.#keepNeighbours(neighbours));
  }

  describe(look: Look): Actual {
    return this.#describe(look);
  }
}

function sameLook(one: Look, other: Look): boolean {
  return (
    one.shown === other.shown &&
    one.device === other.device &&
    isDeepStrictEqual(
      [one.firewall, one.sysctls, one.isSealed, one.hosts, one.neighbours],
      [other.firewall, other.sysctls, other.isSealed, other.hosts, other.neighbours],
    )
  );
}

function findLink({ links }: Shown, name: string): Link | null {
  const link = links.find((each) => each.name === name);
  if (!link) return null;
  const { mtu, up, alias } = link;
  const addresses = link.addresses.map(({ address, length }) => ({ address, length }));
  return { name, mtu, up, alias, addresses };
}

function findRoutes({ routes }: Shown, link: string): Route[] {
  return routes
    .filter(({ links, protocol }) => links.includes(link) && protocol !== kernelProtocol)
    .map(({ prefix, table, protocol }) => ({ prefix, table, protocol }));
}

/** With a VRF the kernel's own routes are in another table than the main one. */
function findOnLink({ links, routes }: Shown, name: string): Prefix[] {
  const link = links.find((each) => each.name === name);
  const ranges = new Set(link?.addresses.map(({ subnet }) => subnet));
  const leading = routes.filter(
    ({ prefix, links: into, table, protocol }) =>
      ranges.has(prefix) && into.includes(name) && (table === 'main' || protocol === kernelProtocol),
  );
  return [...new Set(leading.map(({ prefix }) => prefix))];
}
