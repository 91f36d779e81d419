import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  hashPassword,
  type Origin,
  usualPasswordCost,
  verifyPassword,
} from '../../../src/control-plane/domain/passwords.ts';
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

describe('the passwords of one prefix, or of one user, wait in one queue, and others not behind them', () => {
  const cost = { N: 2 ** 10, r: 8, p: 1 };
  const families: Record<string, { of: (host: number) => Origin; other: Origin; near: Origin }> = {
    IPv4: { of: (host: number) => `203.0.113.${host + 1}`, other: '203.0.114.1', near: '203.0.113.200' },
    IPv6: {
      of: (host: number) => `2001:db8:0:1::${host + 1}`,
      other: '2001:db8:0:2::1',
      near: '2001:db8:0:1:ffff::1',
    },
    'IPv4 in IPv6': {
      of: (host: number) => `::ffff:203.0.113.${host + 1}`,
      other: '::ffff:203.0.114.1',
      near: '203.0.113.200',
    },
    'a user with a session': { of: () => ({ user: 1 }), other: { user: 2 }, near: { user: 1 } },
    'an address, and a user with a session': { of: () => '203.0.113.7', other: { user: 1 }, near: '203.0.113.7' },
    'a user with a session, and an address': { of: () => ({ user: 1 }), other: '203.0.113.7', near: { user: 1 } },
  };

  test.each(Object.entries(families))('%s', async (_, { of, other, near }) => {
    const ended: string[] = [];
    const verify = (origin: Origin, name: string) =>
      verifyPassword(new Secret('x'), null, cost, origin).then(() => ended.push(name));
    const flood = Array.from({ length: 12 }, (_address, host) => verify(of(host), `${host}`));
    await Promise.all([...flood, verify(near, 'near'), verify(other, 'other')]);
    // It came last, but each queue has its turn.
    expect(ended.indexOf('other')).toBeLessThan(ended.indexOf('near'));
  });
});
