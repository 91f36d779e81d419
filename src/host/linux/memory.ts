import type { Device, Route, Surroundings } from '../../core/actual.ts';
import { keepSame, sameList } from '../../core/keep-same.ts';
import { perObject } from '../../core/per-object.ts';
import { dumpReader } from '../wg.ts';
import { type Shown, shownReader } from './ip-show.ts';
import { gatherSurroundings, type Neighbours } from './surroundings.ts';

/**
 * What the last texts of the tools were read as. Every look asks the tools anew; where they say what they said before, to the letter,
 * what comes of it is the very object, so that neither its parsing nor what follows from it is done again. With 10,000 peers that is
 * most of what a pass costs.
 */
export class Memory {
  readonly readShown: (text: string) => Shown = shownReader();
  readonly #links = new Map<string, LinkMemory>();

  /** What belongs to one interface; those of interfaces that are gone are few, and small. */
  of(link: string): LinkMemory {
    const known = this.#links.get(link) ?? new LinkMemory(link);
    this.#links.set(link, known);
    return known;
  }
}

class LinkMemory {
  readonly readDump: (text: string) => Device = dumpReader();
  readonly findRoutes: (shown: Shown) => readonly Route[];
  readonly #keepNeighbours = keepSame<Neighbours>(
    (one, other) => sameList(one.resolvers, other.resolvers) && sameList(one.sshClients, other.sshClients),
  );
  readonly #surroundings: (shown: Shown) => (neighbours: Neighbours) => Surroundings;

  constructor(link: string) {
    this.findRoutes = perObject(({ routes }: Shown) =>
      routes
        .filter(({ links, protocol }) => links.includes(link) && protocol !== 'kernel')
        .map(({ prefix, table, protocol }) => ({ prefix, table, protocol })),
    );
    this.#surroundings = perObject((shown: Shown) =>
      perObject((neighbours: Neighbours) => gatherSurroundings(link, shown, neighbours)),
    );
  }

  gatherSurroundings(shown: Shown, neighbours: Neighbours): Surroundings {
    return this.#surroundings(shown)(this.#keepNeighbours(neighbours));
  }
}
