import { describe, expect, test } from 'vitest';
import { derivePeerToken, hashToken, mintToken } from '../../../src/control-plane/domain/tokens.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';

describe('tokens', () => {
  test('are 256 bits from the source given', () => {
    const token = mintToken('cpn_', (size) => new Uint8Array(size).fill(255));
    expect(token.reveal()).toBe(`cpn_${Buffer.alloc(32, 255).toString('base64url')}`);
    expect(String(token)).not.toContain('cpn_');
  });

  test('derived ones depend on each of their parts', () => {
    const derive = (key: string, idempotency: string, salt: string) =>
      derivePeerToken(new Secret(key), new Secret(idempotency), salt).reveal();
    const token = derive('key', 'attempt', 'salt');
    expect(token).toMatch(/^cpp_[\w-]{43}$/);
    expect(derive('key', 'attempt', 'salt')).toBe(token);
    const others = [
      derive('key2', 'attempt', 'salt'),
      derive('key', 'attempt2', 'salt'),
      derive('key', 'attempt', 's'),
    ];
    expect(new Set([token, ...others]).size).toBe(4);
    expect(hashToken(new Secret(token))).not.toBe(hashToken(new Secret('x')));
  });
});
