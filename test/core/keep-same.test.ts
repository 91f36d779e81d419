import { expect, it, vi } from 'vitest';
import { keepSame, rememberLast, sameList } from '../../src/core/keep-same.ts';
import { perObject } from '../../src/core/per-object.ts';

it('gives the last value again where the new one is the same', () => {
  const keep = keepSame<readonly number[]>(sameList);
  const first = keep([1, 2]);
  expect(keep([1, 2])).toBe(first);
  const second = keep([2, 1]);
  expect(second).toEqual([2, 1]);
  expect(keep([1, 2])).not.toBe(first);
});

it('reads a text once while it is the same', () => {
  const read = vi.fn((text: string) => ({ text }));
  const remember = rememberLast(read);
  expect(remember('one')).toBe(remember('one'));
  expect(remember('other')).toEqual({ text: 'other' });
  expect(remember('one')).toEqual({ text: 'one' });
  expect(read).toHaveBeenCalledTimes(3);
});

it('works a thing out once for each object, also where that is undefined', () => {
  const make = vi.fn(() => undefined);
  const of = perObject(make);
  const [one, other] = [{}, {}];
  for (const key of [one, other, one, other]) of(key);
  expect(make).toHaveBeenCalledTimes(2);
});
