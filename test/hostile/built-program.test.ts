import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Lie } from './lie.ts';
import { lies } from './lies.ts';
import { builtProgramOf } from './program.ts';
import { recordVerdicts, type Verdicts } from './record.ts';
import { Victims } from './victims.ts';

/** Two lies of each family to each question, and the worst for a process that is young: all that takes memory. */
const some = lies.filter(
  (lie, index) => lie.family === 'a crowd' || lies.slice(0, index).filter((other) => isLike(lie, other)).length < 2,
);

let victims: Victims;
let verdicts: Verdicts;

beforeAll(async () => {
  victims = await Victims.start(2, builtProgramOf);
  verdicts = await victims.try(some);
  await recordVerdicts(inject('hostileVerdicts'), verdicts);
}, 600_000);

afterAll(() => victims?.stop());

describe('the built program, and a control plane that lies', () => {
  it('hears lies of every family', () => {
    expect(some.length).toBeGreaterThanOrEqual(40);
    expect(new Set(some.map(({ family }) => family))).toEqual(new Set(lies.map(({ family }) => family)));
  });

  it.each(some.map(({ name }) => name))('%s', (name) => {
    expect(verdicts.get(name)).toEqual([]);
  });
});

function isLike(one: Lie, other: Lie): boolean {
  return one.family === other.family && one.to === other.to;
}
