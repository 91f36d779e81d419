import { expect, it } from 'vitest';
import { listNames } from '../../../src/core/util/list-names.ts';

it('names five and counts the others, unless that is one', () => {
  expect(listNames([])).toBe('');
  expect(listNames(['a', 'b', 'c', 'd', 'e'])).toBe('a, b, c, d, e');
  expect(listNames(['a', 'b', 'c', 'd', 'e', 'f'])).toBe('a, b, c, d, e, f');
  expect(listNames(['a', 'b', 'c', 'd', 'e', 'f', 'g'])).toBe('a, b, c, d, e and 2 more');
});

it.each([
  ['web-1', 'web-1'],
  ['fd00::/64', 'fd00::/64'],
  ['Zoë’s', 'Zoë’s'],
  ['web-1, db-1', '"web-1, db-1"'],
  ['anna phone', '"anna phone"'],
  ['x) and 3 more', '"x) and 3 more"'],
  ['the "new" one', '"the \'new\' one"'],
  ['a\u2003b', '"a\u2003b"'],
  ['', '""'],
])('quotes %j where it would not read as one name', (name, text) => {
  expect(listNames([name])).toBe(text);
});
