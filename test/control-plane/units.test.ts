import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { hashPassword, usualPasswordCost, verifyPassword } from '../../src/control-plane/passwords.ts';
import { derivePeerToken, hashToken, mintToken } from '../../src/control-plane/tokens.ts';
import { createFairGate, createGate, createTurns } from '../../src/control-plane/turns.ts';
import { Secret } from '../../src/core/secret.ts';

describe('passwords', () => {
  const hash = (password: string) => hashPassword(new Secret(password), randomBytes, usualPasswordCost, null);
  const verify = (password: string, stored: string | null) =>
    verifyPassword(new Secret(password), stored, usualPasswordCost, null);

  test('are known again by their hash, which has a salt of its own', async () => {
    const [one, other] = await Promise.all([1, 2].map(() => hash('tr0ub4dor')));
    expect(one).not.toBe(other);
    expect(await verify('tr0ub4dor', one ?? '')).toBe(true);
    expect(await verify('tr0ub4dor ', one ?? '')).toBe(false);
  });

  test('cost what OWASP recommends, and are known at another cost too, which the hash names', async () => {
    const usual = await hash('tr0ub4dor');
    expect(usual).toMatch(/^scrypt\$16384\$8\$5\$/);
    expect(await verifyPassword(new Secret('tr0ub4dor'), usual, { N: 2, r: 1, p: 1 }, null)).toBe(true);
  });

  test('nobody has one without a hash, not even the empty one', async () => {
    expect(await verify('', null)).toBe(false);
  });

  test('the same letters composed in another way are the same password', async () => {
    expect(await verify('cafe\u0301', await hash('caf\u00e9'))).toBe(true);
  });
});

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

/** Work that ends when the test says so, and tells when it began. */
function controlled(log: string[], name: string) {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const work = () => {
    log.push(name);
    return promise;
  };
  return { work, end: () => resolve(name), fail: () => reject(new Error(name)) };
}

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

test('a gate lets so many in at once, in order, and turns away whom it cannot let wait', async () => {
  const gate = createGate(2, 1, () => new Error('full'));
  const log: string[] = [];
  const [a, b, c] = ['a', 'b', 'c'].map((name) => controlled(log, name));
  if (!a || !b || !c) throw new Error('three were made');
  const running = [gate(a.work), gate(b.work), gate(c.work)];
  await expect(gate(async () => 'd')).rejects.toThrow('full');
  expect(log).toEqual(['a', 'b']);
  a.fail();
  await expect(running[0]).rejects.toThrow('a');
  await settle();
  expect(log).toEqual(['a', 'b', 'c']);
  b.end();
  c.end();
  expect(await Promise.all(running.slice(1))).toEqual(['b', 'c']);
  expect(await gate(async () => 'e')).toBe('e');
});

describe('a fair gate', () => {
  /** Starts work for each letter, of which the first takes the only place until `start` is called. */
  function queueUp(names: readonly string[], queue = 64) {
    const gate = createFairGate(1, queue, () => new Error('full'));
    const log: string[] = [];
    const { promise, resolve: start } = Promise.withResolvers<void>();
    const works = names.map((name) => gate(name[0] ?? '', () => promise.then(() => log.push(name))));
    return { log, start, settled: Promise.allSettled(works) };
  }

  test('lets the keys take turns, whatever stands in the queue of one of them', async () => {
    const { log, start, settled } = queueUp(['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']);
    start();
    await settled;
    expect(log).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
  });

  test('refuses, once full, the newest of the longest queue, and a newcomer where all have one', async () => {
    const { log, start, settled } = queueUp(['a1', 'a2', 'a3', 'a4', 'b1', 'a5', 'c1', 'd1'], 3);
    start();
    const results = await settled;
    expect(log).toEqual(['a1', 'a2', 'b1', 'c1']);
    expect(results.map(({ status }) => status === 'rejected')).toEqual([0, 0, 1, 1, 0, 1, 0, 1].map(Boolean));
  });

  test('has room again after a failure, and after all are done', async () => {
    const gate = createFairGate(1, 1, () => new Error('full'));
    const works = [gate('a', () => Promise.reject(new Error('a'))), gate('b', async () => 'b')];
    expect(await Promise.allSettled(works)).toMatchObject([{ status: 'rejected' }, { value: 'b' }]);
    expect(await gate('c', async () => 'c')).toBe('c');
  });
});

test('turns are taken one after another for one key, whatever becomes of the one before, and not between keys', async () => {
  const take = createTurns();
  const log: string[] = [];
  const [a, b, c] = ['a', 'b', 'c'].map((name) => controlled(log, name));
  if (!a || !b || !c) throw new Error('three were made');
  const first = take('one', a.work);
  const second = take('one', b.work);
  const other = take('two', c.work);
  await settle();
  expect(log).toEqual(['a', 'c']);
  a.fail();
  await expect(first).rejects.toThrow('a');
  await settle();
  expect(log).toEqual(['a', 'c', 'b']);
  b.end();
  c.end();
  expect(await Promise.all([second, other])).toEqual(['b', 'c']);
});
