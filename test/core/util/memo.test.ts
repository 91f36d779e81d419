import { expect, it, vi } from 'vitest';
import { memoizeByString, memoizeLast } from '../../../src/core/util/memo.ts';

it('memoizeLast calls the function once while the text is the same', () => {
  const read = vi.fn((text: string) => ({ text }));
  const remember = memoizeLast(read);
  expect(remember('one')).toBe(remember('one'));
  expect(remember('other')).toEqual({ text: 'other' });
  expect(remember('one')).toEqual({ text: 'one' });
  expect(read).toHaveBeenCalledTimes(3);
});

it('memoizeByString calls the function once for each text', () => {
  const asked: string[] = [];
  const lengthOf = memoizeByString((text: string) => {
    asked.push(text);
    return text.length;
  });
  expect([lengthOf('a'), lengthOf('bb'), lengthOf('a'), lengthOf('')]).toEqual([1, 2, 1, 0]);
  expect(asked).toEqual(['a', 'bb', '']);
});

it('memoizeByString drops its entries at a limit: a daemon runs for years, in networks whose addresses change', () => {
  let asked = 0;
  const read = memoizeByString((text: string) => {
    asked += 1;
    return Number(text);
  });
  for (let text = 0; text < 100_000; text += 1) read(`${text}`);
  expect([read('99999'), asked]).toEqual([99_999, 100_000]);
  expect([read('0'), asked]).toEqual([0, 100_001]);
});
