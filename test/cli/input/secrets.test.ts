import { describe, expect, test } from 'vitest';
import { readToken } from '../../../src/cli/input/secrets.ts';

const whole = `cpn_${'Ab-_'.repeat(10)}xyz`;

describe('a key that is given', () => {
  test.each([
    whole,
    'cpn_short',
    'cpn_of.another+service=',
    `cpn_a-cpn_${'b'.repeat(37)}`,
    `  ${whole}\n`,
    `\ufeff${whole}`,
  ])('is taken: %j', async (given) => {
    expect((await readToken(given, 'the key')).reveal()).toBe(given.trim());
  });

  test.each([
    ['two keys in a line', `${whole} ${whole}`, 'contains more than one key'],
    ['two keys in two lines', `${whole}\ncpn_other`, 'contains more than one key'],
    ['two keys without anything between', whole + whole, 'contains more than one key'],
    ['two keys in quotation marks', `"${whole}" "${whole}"`, 'contains more than one key'],
    ['a blank', whole.replace('-', ' '), 'contains whitespace'],
    ['a space of no width', whole.replace('-', '\u200b'), 'has an invisible character (U+200B)'],
    ['a change of direction', `${whole}\u202e`, 'has an invisible character (U+202E)'],
    ['quotation marks', `'${whole}'`, 'is in quotation marks'],
    ['a letter of another script', whole.replace('A', '\u0410'), 'has a character that is not valid in a key'],
  ])('is refused with its fault: %s', async (_, given, fault) => {
    const error = await readToken(given, 'the key').then(String, (refusal: Error) => refusal.message);
    expect(error).toBe(`the key ${fault}; give it alone, as one word`);
  });
});
