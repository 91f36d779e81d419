import type { AccessChange } from '../../../contract/rules.ts';
import type { Rule } from '../../../core/map/access-rules.ts';
import { fullAccess, noAccess, subtractAccess, uniteRules } from './access.ts';
import { parseRules } from './decide.ts';
import type { RuleSet } from './rule-set.ts';

type Connections = Pick<AccessChange, 'protocol' | 'ports'>;

/** The difference of the access of a pair; the same object for equal differences. */
export interface Difference {
  readonly gained: readonly Connections[];
  readonly lost: readonly Connections[];
}

export const none: Difference = { gained: [], lost: [] };

/** The rules before a change or after it. */
interface Side {
  readonly isOpen: boolean;
  readonly requires: boolean;
  /** The places of its rules. */
  readonly has: ReadonlySet<number>;
}

const mostKept = 20_000;

/** The differences between two sets of rules. */
export class Differences {
  /** The rules of both, those with the same meaning once. */
  readonly rules: readonly Rule[];
  readonly #old: Side;
  readonly #next: Side;
  readonly #known = new Map<string, Difference>();
  readonly #byText = new Map<string, Difference>();

  constructor(before: RuleSet, after: RuleSet) {
    const places = new Map<string, number>();
    const rules: Rule[] = [];
    const toSide = (set: RuleSet): Side => {
      const ruling = parseRules(set);
      const has = ruling.rules.map((rule) => {
        const { name: _, ...meaning } = rule;
        const key = JSON.stringify(meaning);
        const place = places.get(key) ?? rules.push(rule) - 1;
        places.set(key, place);
        return place;
      });
      return { isOpen: ruling.mode === 'open', requires: ruling.requiresEnforcement, has: new Set(has) };
    };
    this.#old = toSide(before);
    this.#next = toSide(after);
    this.rules = rules;
  }

  /** True if no pair that only these rules concern can differ. */
  areNone(places: readonly number[]): boolean {
    const [old, next] = [this.#old, this.#next];
    const isSameMode = old.isOpen === next.isOpen && old.requires === next.requires;
    return isSameMode && places.every((place) => old.has.has(place) === next.has.has(place));
  }

  /**
   * The difference of a pair that these rules concern.
   * @param places of rules, in the same order for equal sets
   * @param enforces false if the host of the destination does not enforce rules
   */
  between(places: readonly number[], enforces: boolean): Difference {
    const key = `${enforces} ${places}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    if (this.#known.size > mostKept) this.#known.clear();
    const difference = this.#intern(this.#compute(places, enforces));
    this.#known.set(key, difference);
    return difference;
  }

  #compute(places: readonly number[], enforces: boolean): Difference {
    const accessBy = ({ isOpen, requires, has }: Side) => {
      if (isOpen) return fullAccess;
      if (requires && !enforces) return noAccess;
      return uniteRules(places.flatMap((place) => (has.has(place) ? (this.rules[place] ?? []) : [])));
    };
    const [old, next] = [accessBy(this.#old), accessBy(this.#next)];
    return { gained: subtractAccess(next, old), lost: subtractAccess(old, next) };
  }

  #intern(difference: Difference): Difference {
    if (difference.gained.length + difference.lost.length === 0) return none;
    const text = JSON.stringify(difference);
    const same = this.#byText.get(text) ?? difference;
    this.#byText.set(text, same);
    return same;
  }
}
