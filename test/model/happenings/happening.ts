import type { Invariants } from '../invariants.ts';
import type { Member, Model } from '../model.ts';
import type { Site } from '../site.ts';

/** The hosts of a random day, and what has to hold on them. */
export interface Day {
  readonly site: Site;
  readonly invariants: Invariants;
}

/** One thing that happens, to one of the hosts. */
export interface Happening<Name extends Member = Member> {
  /** In words, for the report. */
  readonly what: string;
  /** To which hosts it can happen. */
  readonly to: readonly Name[];
  /** Whether it can happen now; to a member that is present, unless this is set. */
  can?(model: Model, name: Name): boolean;
  do(day: Day, name: Name, model: Model): Promise<unknown>;
}

/** A happening whose hosts are some of the members. */
export function happening<Name extends Member>(each: Happening<Name>): Happening {
  return each as unknown as Happening;
}
