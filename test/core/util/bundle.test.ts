import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { collectSecrets, redact, Secret } from '../../../src/core/crypto/secret.ts';
import { packTar } from '../../../src/core/util/tar.ts';

describe('packTar', () => {
  it.each([0, 1, 511, 512, 513, 100_000])('packs %i bytes so that tar gets them back', (size) => {
    const content = Buffer.alloc(size, 'x');
    const archive = packTar(
      [
        { path: 'a/first', content },
        { path: 'a/second', content: Buffer.from('zwölf') },
      ],
      1_700_000_000,
    );
    const tar = (...args: string[]) =>
      execFileSync('tar', args, { input: archive, env: { ...process.env, TZ: 'UTC' } });
    expect(`${tar('-tvf', '-')}`).toMatch(/^-rw------- 0\/0 +\d+ 2023-11-14 22:13 a\/first\n.* a\/second\n$/);
    expect(tar('-xOf', '-', 'a/first')).toEqual(content);
    expect(`${tar('-xOf', '-', 'a/second')}`).toBe('zwölf');
  });
});

describe('redact', () => {
  it('strikes out every Secret wherever it is kept, and what looks like a token', () => {
    const secrets = collectSecrets({ a: [{ b: new Secret('opaque-and-long') }], c: new Map(), d: null, e: 'plain' });
    expect(redact('x opaque-and-long y cpp_abcdefgh plain', secrets)).toBe('x [secret] y cpp_[secret] plain');
  });
});
