import { quote, WrongUsage } from '../errors/index.ts';

/** How a user names an item of a list. */
export interface Naming<Thing> {
  /** The noun for messages, such as `network`. */
  readonly what: string;
  /** A unique name that no member chooses, such as an interface. It takes precedence. */
  readonly ownName?: (thing: Thing) => string;
  /**
   * The id, name and addresses by which users may name the thing. Members and control planes choose
   * some of them, so two things may share one.
   */
  readonly names: (thing: Thing) => readonly string[];
  /** A description that distinguishes it from others. Names are quoted. */
  readonly describe: (thing: Thing) => string;
  /** How to name one of several matches. */
  readonly remedy: string;
}

/**
 * The only item with exactly this name. Null without a match.
 *
 * @throws WrongUsage with all matches, if there are several
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

/** Lists the first 20 items in one line. `none` for an empty list. */
export function describeList<Thing>(list: readonly Thing[], { describe }: Pick<Naming<Thing>, 'describe'>): string {
  const shown = list.slice(0, mostListed).map(describe);
  const more = list.length > shown.length ? ` and ${list.length - shown.length} more` : '';
  return shown.length === 0 ? 'none' : `${shown.join(', ')}${more}`;
}
