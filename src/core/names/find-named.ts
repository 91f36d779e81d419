import { quote, WrongUsage } from '../errors/index.ts';

/** How a person names one thing of a list. */
export interface Naming<Thing> {
  /** The noun for messages, such as `network`. */
  readonly what: string;
  /** A name that no two have and that no member chooses, such as an interface of this host: it wins over all others. */
  readonly ownName?: (thing: Thing) => string;
  /** Its id, its name, its addresses. Members and control planes choose some of them, perhaps those of another. */
  readonly names: (thing: Thing) => readonly string[];
  /** What tells it from others, with names that are quoted. */
  readonly describe: (thing: Thing) => string;
  /** What names one of several that match. */
  readonly remedy: string;
}

/**
 * The one thing that has exactly this name, in full; null where there is none.
 *
 * @throws WrongUsage with all that match, where there are several
 */
export function findNamed<Thing>(list: readonly Thing[], named: string, naming: Naming<Thing>): Thing | null {
  const { what, ownName, names, remedy } = naming;
  const owned = ownName && list.find((thing) => ownName(thing) === named);
  const [only, ...more] = owned === undefined ? list.filter((thing) => names(thing).includes(named)) : [owned];
  if (only === undefined || more.length === 0) return only ?? null;
  const matching = describeList([only, ...more], naming);
  throw new WrongUsage(`${quote(named)} matches ${more.length + 1} ${what}s: ${matching}; ${remedy}`);
}

const mostListed = 20;

/** The things in one line, the first 20 of them; `none` where there is none. */
export function describeList<Thing>(list: readonly Thing[], { describe }: Pick<Naming<Thing>, 'describe'>): string {
  const shown = list.slice(0, mostListed).map(describe);
  const more = list.length > shown.length ? ` and ${list.length - shown.length} more` : '';
  return shown.length === 0 ? 'none' : `${shown.join(', ')}${more}`;
}
