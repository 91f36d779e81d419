import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Lie } from './lie.ts';
import { lies } from './lies.ts';
import { serveProgram } from './program.ts';
import { countVerdicts, recordVerdicts, type Verdicts } from './record.ts';
import { keyOf } from './truth.ts';
import { Victims } from './victims.ts';

/**
 * Every lie, told over a real connection to the whole program on a host of its own in the lab: its commands, client, decoders, store, plan and
 * Linux tools. Only Node is not started for each, which would cost more than all the rest: `built-program.test.ts` does that with some of them.
 */
let victims: Victims;
let verdicts: Verdicts;

beforeAll(async () => {
  victims = await Victims.start(5, serveProgram);
  verdicts = await victims.try(lies);
  await recordVerdicts(inject('hostileVerdicts'), verdicts);
}, 1_200_000);

afterAll(() => victims?.stop());

/** What a lie puts on the wire, as a host with this key would get it. */
function digest(lie: Lie): string {
  const hash = createHash('sha256').update(lie.to);
  const { bytes, ending } = lie.tell({ self: keyOf('self'), secret: 'cpp_secret', revision: '"12"' });
  for (const part of bytes) hash.update(part);
  return hash.update(ending).digest('hex');
}

describe('the lies', () => {
  it('are 500 and more, no two with one name', () => {
    expect(lies.length).toBeGreaterThanOrEqual(500);
    expect(new Set(lies.map(({ name }) => name)).size).toBe(lies.length);
  });

  it('are no two the same bytes', () => {
    const seen = new Map<string, string>();
    for (const lie of lies) {
      const hash = digest(lie);
      expect(seen.get(hash), lie.name).toBeUndefined();
      seen.set(hash, lie.name);
    }
  });

  it('were all told, and all refused', () => {
    expect(countVerdicts(verdicts)).toEqual({ tried: lies.length, refused: lies.length });
  });
});

describe('a control plane that lies', () => {
  it.each(lies.map(({ name }) => name))('%s', (name) => {
    expect(verdicts.get(name)).toEqual([]);
  });
});
