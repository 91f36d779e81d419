import { expect, test } from 'vitest';
import { TextCache } from '../../../src/control-plane/push/map-cache.ts';
import { unpooledBuffer } from '../../../src/control-plane/push/serialized-network.ts';

/** Higher revisions are observed later. */
const observed = (revision: number) => ({ revision, nonce: 'one', at: revision });
const text = (size: number) => ({ bytes: Buffer.alloc(size) });

/** A cache, and a record of the texts that it made: network, revision and name. */
function cacheOf(maxBytes: number) {
  const cache = new TextCache(maxBytes);
  const made: string[] = [];
  const get = (id: number, revision: number, name = 'whole', size = 700) =>
    cache.get(id, observed(revision), name, async ({ revision: latest }) => {
      made.push(`${id} ${latest} ${name}`);
      return text(size);
    });
  return { get, made };
}

test('a text is made once for concurrent and for later requests', async () => {
  const { get, made } = cacheOf(10_000);
  const texts = await Promise.all([get(1, 1), get(1, 1)]);
  expect([texts[0] === texts[1], await get(1, 1)]).toEqual([true, texts[0]]);
  await get(1, 1, 'since 0');
  expect(made).toEqual(['1 1 whole', '1 1 since 0']);
});

test('a request for a later revision drops earlier texts, and a late request gets the later one', async () => {
  const { get, made } = cacheOf(10_000);
  const early = await get(1, 1);
  const late = await get(1, 2);
  expect([late === early, (await get(1, 1)) === late]).toEqual([false, true]);
  await get(1, 1, 'since 0');
  await get(1, 2, 'since 0');
  expect(made).toEqual(['1 1 whole', '1 2 whole', '1 2 since 0']);
});

test('a revision of another history, after a restore, has its own texts, with a lower, equal or higher number', async () => {
  for (const [index, restored] of [1, 2, 9].entries()) {
    const cache = new TextCache(10_000);
    const first = await cache.get(1, observed(2), 'whole', async () => text(1));
    const other = { revision: restored, nonce: 'other', at: 10 + index };
    const second = await cache.get(1, other, 'whole', async () => text(2));
    expect([second === first, await cache.get(1, other, 'whole', async () => text(3))]).toEqual([false, second]);
    // A request that observed the lost revision is late.
    expect(await cache.get(1, observed(2), 'whole', async () => text(4))).toBe(second);
  }
});

test('a text that was still being made when a later revision came is returned, and not cached for that', async () => {
  const cache = new TextCache(1_500);
  const slow = Promise.withResolvers<{ bytes: Buffer }>();
  const early = cache.get(1, observed(1), 'whole', () => slow.promise);
  const late = await cache.get(1, observed(2), 'whole', async () => text(10));
  slow.resolve(text(900));
  expect((await early).bytes.length).toBe(900);
  await cache.get(2, observed(1), 'whole', async () => text(400));
  expect(await cache.get(1, observed(2), 'whole', async () => text(11))).toBe(late);
});

test('beyond the byte budget the least recently used networks leave the cache', async () => {
  const { get, made } = cacheOf(4_000);
  for (const id of [1, 2, 3, 4, 2, 3, 4, 1]) await get(id, 1);
  expect(made).toEqual(['1 1 whole', '2 1 whole', '3 1 whole', '4 1 whole', '1 1 whole']);
  // A text larger than the budget is returned, and not cached.
  expect((await get(5, 1, 'huge', 5_000)).bytes.length).toBe(5_000);
  await get(5, 1, 'huge', 5_000);
  expect(made.slice(5)).toEqual(['5 1 huge', '5 1 huge']);
});

test('a failed text is made again', async () => {
  const cache = new TextCache(10_000);
  const failing = async () => {
    throw new Error('no database');
  };
  await expect(cache.get(1, observed(1), 'whole', failing)).rejects.toThrow('no database');
  expect((await cache.get(1, observed(1), 'whole', async () => text(3))).bytes.length).toBe(3);
});

test('unpooled bytes are no part of a larger buffer', () => {
  expect(unpooledBuffer('{"name":"Zürich"}')).toEqual(Buffer.from('{"name":"Zürich"}'));
  expect(unpooledBuffer('few').buffer.byteLength).toBe(3);
});
