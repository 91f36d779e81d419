import { expect, test } from 'vitest';
import { ownBytes } from '../../src/control-plane/own-bytes.ts';
import { TextCache } from '../../src/control-plane/text-cache.ts';

/** A revision that was seen later the higher it is. */
const seen = (revision: number) => ({ revision, nonce: 'one', at: revision });
const text = (size: number) => ({ bytes: Buffer.alloc(size) });

/** A cache, and what was made for it: the network, the revision and the name. */
function cacheOf(maxBytes: number) {
  const cache = new TextCache(maxBytes);
  const made: string[] = [];
  const get = (id: number, revision: number, name = 'whole', size = 700) =>
    cache.get(id, seen(revision), name, async ({ revision: latest }) => {
      made.push(`${id} ${latest} ${name}`);
      return text(size);
    });
  return { get, made };
}

test('a text is made once, for who asks meanwhile and for who asks later', async () => {
  const { get, made } = cacheOf(10_000);
  const texts = await Promise.all([get(1, 1), get(1, 1)]);
  expect([texts[0] === texts[1], await get(1, 1)]).toEqual([true, texts[0]]);
  await get(1, 1, 'since 0');
  expect(made).toEqual(['1 1 whole', '1 1 since 0']);
});

test('texts of an earlier revision go with the first that asks for a later one, and who is late gets the later one', async () => {
  const { get, made } = cacheOf(10_000);
  const early = await get(1, 1);
  const late = await get(1, 2);
  expect([late === early, (await get(1, 1)) === late]).toEqual([false, true]);
  await get(1, 1, 'since 0');
  await get(1, 2, 'since 0');
  expect(made).toEqual(['1 1 whole', '1 2 whole', '1 2 since 0']);
});

test('a revision of another history, seen after a restore, has texts of its own, be its number lower, the same or higher', async () => {
  for (const [index, restored] of [1, 2, 9].entries()) {
    const cache = new TextCache(10_000);
    const first = await cache.get(1, seen(2), 'whole', async () => text(1));
    const other = { revision: restored, nonce: 'other', at: 10 + index };
    const second = await cache.get(1, other, 'whole', async () => text(2));
    expect([second === first, await cache.get(1, other, 'whole', async () => text(3))]).toEqual([false, second]);
    // What saw the lost one is late.
    expect(await cache.get(1, seen(2), 'whole', async () => text(4))).toBe(second);
  }
});

test('a text that was still made when a later revision came is given, and not kept for that', async () => {
  const cache = new TextCache(1_000);
  const slow = Promise.withResolvers<{ bytes: Buffer }>();
  const early = cache.get(1, seen(1), 'whole', () => slow.promise);
  const late = await cache.get(1, seen(2), 'whole', async () => text(10));
  slow.resolve(text(900));
  expect((await early).bytes.length).toBe(900);
  await cache.get(2, seen(1), 'whole', async () => text(400));
  expect(await cache.get(1, seen(2), 'whole', async () => text(11))).toBe(late);
});

test('the texts of the networks that changed longest ago go when there are too many bytes, and the rest stay', async () => {
  const { get, made } = cacheOf(3_000);
  for (const id of [1, 2, 3, 4, 2, 3, 4, 1]) await get(id, 1);
  expect(made).toEqual(['1 1 whole', '2 1 whole', '3 1 whole', '4 1 whole', '1 1 whole']);
  // One that is too large by itself is given, and not kept.
  expect((await get(5, 1, 'huge', 5_000)).bytes.length).toBe(5_000);
  await get(5, 1, 'huge', 5_000);
  expect(made.slice(5)).toEqual(['5 1 huge', '5 1 huge']);
});

test('what failed is tried again', async () => {
  const cache = new TextCache(10_000);
  const failing = async () => {
    throw new Error('no database');
  };
  await expect(cache.get(1, seen(1), 'whole', failing)).rejects.toThrow('no database');
  expect((await cache.get(1, seen(1), 'whole', async () => text(3))).bytes.length).toBe(3);
});

test('bytes that are kept are no piece of anything', () => {
  expect(ownBytes('{"name":"Zürich"}')).toEqual(Buffer.from('{"name":"Zürich"}'));
  expect(ownBytes('few').buffer.byteLength).toBe(3);
});
