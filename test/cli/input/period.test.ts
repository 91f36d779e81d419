import { expect, it } from 'vitest';
import { Input } from '../../../src/cli/input/input.ts';
import { InvalidValue } from '../../../src/core/errors/index.ts';

const day = 86_400;

const read = (text: string) =>
  new Input({ 'rotate-every': text }, { 'rotate-every': { kind: 'text', summary: '' } }, {}).period(
    'rotate-every',
    3_600,
    400 * day,
  );

it.each([
  ['90m', 5_400],
  ['1h', 3_600],
  ['12h', day / 2],
  ['30d', 30 * day],
  ['400d', 400 * day],
])('reads %s as %d s', (text, seconds) => {
  expect(read(text)).toBe(seconds);
});

it.each(['30', '59m', '0d', '401d', '1.5h', '-1h', '1w', '30 d', 'd', '9999999h'])(
  'refuses %j, and says what it takes',
  (text) => {
    expect(() => read(text)).toThrow(InvalidValue);
    expect(() => read(text)).toThrow('is not a time from 1h to 400d, such as 12h or 30d');
  },
);
