/** What can happen on a day, as commands of fast-check. */
import fc from 'fast-check';
import type { Member, Model } from '../model.ts';
import { timed } from '../settings.ts';
import { daemonHappenings } from './daemon.ts';
import { foreignHappenings } from './foreign.ts';
import type { Day, Happening } from './happening.ts';
import { hostHappenings } from './host.ts';
import { networkHappenings } from './network.ts';
import { serviceHappenings } from './service.ts';
import { tunnelHappenings } from './tunnel.ts';
import { underlayHappenings } from './underlay.ts';

const happenings: readonly Happening[] = [
  ...daemonHappenings,
  ...tunnelHappenings,
  ...hostHappenings,
  ...networkHappenings,
  ...serviceHappenings,
  ...foreignHappenings,
  ...underlayHappenings,
];

/** A happening to a host as a command of fast-check. */
class Step implements fc.AsyncCommand<Model, Day> {
  readonly happening: Happening;
  readonly name: Member;

  constructor(each: Happening, name: Member) {
    this.happening = each;
    this.name = name;
  }

  check(model: Readonly<Model>): boolean {
    return this.happening.can?.(model, this.name) ?? model.present.has(this.name);
  }

  async run(model: Model, day: Day): Promise<void> {
    await timed(`${this}`, async () => {
      await this.happening.do(day, this.name, model);
      await day.invariants.settle(model);
    });
  }

  toString(): string {
    return `${this.name}: ${this.happening.what}`;
  }
}

/** Any happening, to any host that it can happen to. */
export const steps: fc.Arbitrary<fc.AsyncCommand<Model, Day>>[] = happenings.map((each) =>
  fc.constantFrom(...each.to).map((name) => new Step(each, name)),
);
