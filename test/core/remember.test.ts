import { expect, it } from 'vitest';
import { remember } from '../../src/core/remember.ts';

it('works out what a text means once', () => {
  const asked: string[] = [];
  const lengthOf = remember((text: string) => {
    asked.push(text);
    return text.length;
  });
  expect([lengthOf('a'), lengthOf('bb'), lengthOf('a'), lengthOf('')]).toEqual([1, 2, 1, 0]);
  expect(asked).toEqual(['a', 'bb', '']);
});

it('does not remember without end: a daemon lives for years, in networks whose addresses change', () => {
  let asked = 0;
  const read = remember((text: string) => {
    asked += 1;
    return Number(text);
  });
  for (let text = 0; text < 100_000; text += 1) read(`${text}`);
  expect([read('99999'), asked]).toEqual([99_999, 100_000]);
  expect([read('0'), asked]).toEqual([0, 100_001]);
});
