import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseField, toObject, typed } from '../../../src/cli/api/fields.ts';
import { WrongUsage } from '../../../src/core/errors/index.ts';

/** What these fields, each as given to `--field`, make together. */
function build(...given: string[]) {
  const fields = given.map((each) => parseField(each, '--field'));
  return JSON.parse(JSON.stringify(toObject(fields.map((field) => ({ field, value: typed(field.text ?? '') })))));
}

describe('fields make an object', () => {
  it.each<[string[], unknown]>([
    [['name=office', 'max_uses=3'], { name: 'office', max_uses: 3 }],
    [['a='], { a: '' }],
    [['a=b=c'], { a: 'b=c' }],
    [['a=1,2'], { a: '1,2' }],
    [['a=two\nlines'], { a: 'two\nlines' }],
    [['a[b]=1', 'a[c][d]=2'], { a: { b: 1, c: { d: 2 } } }],
    [['a[]=1', 'a[]=x'], { a: [1, 'x'] }],
    [['a[]'], { a: [] }],
    [['a[b][]'], { a: { b: [] } }],
    [['a[][x]=1', 'a[][y]=2', 'a[][x]=3'], { a: [{ x: 1, y: 2 }, { x: 3 }] }],
    [['a[][]=1', 'a[][]=2'], { a: [[1], [2]] }],
    [['toString=1', 'a[constructor]=2'], { toString: 1, a: { constructor: 2 } }],
  ])('%j', (given, made) => {
    expect(build(...given)).toEqual(made);
  });

  it('keeps a field called __proto__ a field', () => {
    const fields = [parseField('__proto__[x]=1', '--field')];
    expect(JSON.stringify(toObject(fields.map((field) => ({ field, value: 1 }))))).toBe('{"__proto__":{"x":1}}');
    expect(Object.hasOwn(Object.prototype, 'x')).toBe(false);
  });

  it.each([[['a=1', 'a=2']], [['a=1', 'a[b]=2']], [['a[]=1', 'a[b]=2']], [['a[b]=1', 'a[]=2']], [['a[]=1', 'a[]']]])(
    '%j set something twice',
    (given) => {
      expect(() => build(...given)).toThrow(WrongUsage);
    },
  );

  it.each(['', 'a', '=1', '[]=1', 'a[=1', 'a]=1', 'a[b]c=1', 'a[b]'])('%j is no field', (given) => {
    expect(() => parseField(given, '--field')).toThrow(/--field .* is not a field; write NAME=VALUE/);
  });

  it('shows no value of a field that is none', () => {
    expect(() => parseField('[x]=canary', '--field')).toThrow(expect.not.stringContaining('canary'));
  });
});

describe('a value', () => {
  it.each<[string, unknown]>([
    ['true', true],
    ['false', false],
    ['null', null],
    ['0', 0],
    ['-12', -12],
    ['9007199254740991', 9007199254740991],
    // What a number would lose.
    ['9007199254740993', '9007199254740993'],
    ['01067', '01067'],
    ['-0', '-0'],
    ['1.10', '1.10'],
    ['1e3', '1e3'],
    ['0x10', '0x10'],
    ['+49301234', '+49301234'],
    ['True', 'True'],
    ['', ''],
  ])('%j is %j', (text, value) => {
    expect(typed(text)).toBe(value);
  });

  it('is never changed by becoming a number', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^-?[0-9]{1,20}$/)), (text) => String(typed(text)) === text),
    );
  });
});
