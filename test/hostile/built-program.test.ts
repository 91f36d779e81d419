import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { maliciousReplies } from './malicious-replies.ts';
import type { MaliciousReply } from './malicious-reply.ts';
import { builtProgramOf } from './program.ts';
import { recordVerdicts, type Verdicts } from './record.ts';
import { Targets } from './targets.ts';

/** One reply of each family to each request, and the worst for a new process: all that takes memory. */
const some = maliciousReplies.filter(
  (reply, index) =>
    reply.family === 'a crowd' || !maliciousReplies.slice(0, index).some((other) => isLike(reply, other)),
);

let targets: Targets;
let verdicts: Verdicts;

beforeAll(async () => {
  targets = await Targets.start({ hosts: 2, forSlow: 2 }, builtProgramOf);
  verdicts = await targets.try(some);
  await recordVerdicts(inject('hostileVerdicts'), verdicts);
}, 600_000);

afterAll(() => targets?.stop());

describe('the built program, and a malicious control plane', () => {
  it('receives replies of every family', () => {
    expect(some.length).toBeGreaterThanOrEqual(35);
    expect(new Set(some.map(({ family }) => family))).toEqual(new Set(maliciousReplies.map(({ family }) => family)));
  });

  it.each(some.map(({ name }) => name))('%s', (name) => {
    expect(verdicts.get(name)).toEqual([]);
  });
});

function isLike(one: MaliciousReply, other: MaliciousReply): boolean {
  return one.family === other.family && one.to === other.to;
}
