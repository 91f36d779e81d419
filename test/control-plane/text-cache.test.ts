import { expect, test } from 'vitest';
import { TextCache } from '../../src/control-plane/text-cache.ts';

const text = (size: number) => ({ bytes: Buffer.alloc(size) });

test('a text is made once, for who asks meanwhile and for who asks later', async () => {
  const cache = new TextCache(10_000);
  let made = 0;
  const make = async () => {
    made += 1;
    return text(10);
  };
  const texts = await Promise.all([cache.get('a', make), cache.get('a', make)]);
  expect([texts[0] === texts[1], await cache.get('a', make), made]).toEqual([true, texts[0], 1]);
  await cache.get('b', make);
  expect(made).toBe(2);
});

test('the oldest texts go when there are too many bytes, and the rest stay', async () => {
  const cache = new TextCache(3_000);
  const made: string[] = [];
  const get = (key: string, size = 700) =>
    cache.get(key, async () => {
      made.push(key);
      return text(size);
    });
  for (const key of ['a', 'b', 'c', 'd', 'b', 'c', 'd', 'a']) await get(key);
  expect(made).toEqual(['a', 'b', 'c', 'd', 'a']);
  // One that is too large by itself is given, and not kept.
  expect((await get('huge', 5_000)).bytes.length).toBe(5_000);
  await get('huge', 5_000);
  expect(made.slice(5)).toEqual(['huge', 'huge']);
});

test('what failed is tried again', async () => {
  const cache = new TextCache(10_000);
  const failing = async () => {
    throw new Error('no database');
  };
  await expect(cache.get('a', failing)).rejects.toThrow('no database');
  expect((await cache.get('a', async () => text(3))).bytes.length).toBe(3);
});
