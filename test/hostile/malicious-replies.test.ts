import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { forHosts } from './decoded-replies.ts';
import { maliciousReplies } from './malicious-replies.ts';
import type { MaliciousReply } from './malicious-reply.ts';
import { serveProgram } from './program.ts';
import { countVerdicts, recordVerdicts, type Verdicts } from './record.ts';
import { Targets } from './targets.ts';
import { keyOf } from './true-replies.ts';

/**
 * Malicious replies, sent over a real connection to the whole program on a host of its own in the lab: its
 * commands, client, decoders, store, plan and Linux tools. Only Node is not started for each, which would cost more
 * than all the rest: `built-program.test.ts` does that with some of them. What the decoder decides about alone is in
 * `decoded-replies.test.ts`, and one of eight of it here.
 */
const sent = forHosts(maliciousReplies);
let targets: Targets;
let verdicts: Verdicts;

beforeAll(async () => {
  targets = await Targets.start({ hosts: 4, forSlow: 6 }, serveProgram);
  verdicts = await targets.try(sent);
  await recordVerdicts(inject('hostileVerdicts'), verdicts);
}, 1_200_000);

afterAll(() => targets?.stop());

/** A digest of the bytes that a host with this key would receive. */
function digest(reply: MaliciousReply): string {
  const hash = createHash('sha256').update(reply.to);
  const { bytes, ending } = reply.make({ self: keyOf('self'), secret: 'cpp_secret', revision: '"12"' });
  for (const part of bytes) hash.update(part);
  return hash.update(ending).digest('hex');
}

describe('malicious replies', () => {
  it('are 500 and more, no two with one name', () => {
    expect(maliciousReplies.length).toBeGreaterThanOrEqual(500);
    expect(new Set(maliciousReplies.map(({ name }) => name)).size).toBe(maliciousReplies.length);
  });

  it('are no two the same bytes', () => {
    const seen = new Map<string, string>();
    for (const reply of maliciousReplies) {
      const hash = digest(reply);
      expect(seen.get(hash), reply.name).toBeUndefined();
      seen.set(hash, reply.name);
    }
  });

  it('were all sent, and all refused', () => {
    expect(countVerdicts(verdicts)).toEqual({ tried: sent.length, refused: sent.length });
  });
});

describe('a malicious control plane', () => {
  it.each(sent.map(({ name }) => name))('%s', (name) => {
    expect(verdicts.get(name)).toEqual([]);
  });
});
