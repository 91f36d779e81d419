import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { hashPassword, usualPasswordCost, verifyPassword } from '../../../src/control-plane/domain/passwords.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';

describe('passwords', () => {
  const hash = (password: string) => hashPassword(new Secret(password), randomBytes, usualPasswordCost, null);
  const verify = (password: string, stored: string | null) =>
    verifyPassword(new Secret(password), stored, usualPasswordCost, null);

  test('are verified by their hash, which has its own salt', async () => {
    const [one, other] = await Promise.all([1, 2].map(() => hash('tr0ub4dor')));
    expect(one).not.toBe(other);
    expect(await verify('tr0ub4dor', one ?? '')).toBe(true);
    expect(await verify('tr0ub4dor ', one ?? '')).toBe(false);
  });

  test('cost what OWASP recommends, and are verified at another cost too, which the hash names', async () => {
    const usual = await hash('tr0ub4dor');
    expect(usual).toMatch(/^scrypt\$16384\$8\$5\$/);
    expect(await verifyPassword(new Secret('tr0ub4dor'), usual, { N: 2, r: 1, p: 1 }, null)).toBe(true);
  });

  test('without a hash no password is right, not even the empty one', async () => {
    expect(await verify('', null)).toBe(false);
  });

  test('the same letters composed in another way are the same password', async () => {
    expect(await verify('cafe\u0301', await hash('caf\u00e9'))).toBe(true);
  });
});
