import { describe, expect, it } from 'vitest';
import type { Flags } from '../../../src/cli/input/flags.ts';
import { Input } from '../../../src/cli/input/input.ts';
import { InvalidValue, WrongUsage } from '../../../src/core/errors/index.ts';

const flags: Flags = {
  name: { kind: 'text', summary: '' },
  'listen-port': { kind: 'text', summary: '' },
  route: { kind: 'list', summary: '' },
  masquerade: { kind: 'switch', summary: '' },
};

const input = (given: Record<string, unknown>, environment: Record<string, string> = {}) =>
  new Input(given, flags, environment);

describe('input', () => {
  it('takes the command line before the variable', () => {
    expect(input({ 'listen-port': '1' }, { CPN_LISTEN_PORT: '2' }).number('listen-port', 1, 9)).toBe(1);
    expect(input({}, { CPN_LISTEN_PORT: '2' }).number('listen-port', 1, 9)).toBe(2);
    expect(input({}).number('listen-port', 1, 9)).toBeUndefined();
  });

  it.each(['abc', '1e3', '0x10', '-1', '1.5', ' 7', '10', '', '007'])('takes %j for no number from 1 to 9', (text) => {
    expect(() => input({ 'listen-port': text }).number('listen-port', 1, 9)).toThrow(
      text === '' ? WrongUsage : InvalidValue,
    );
  });

  it('refuses a flag that was given twice, and one that is empty', () => {
    expect(() => input({ name: ['a', 'b'] }).text('name')).toThrow('--name was given 2 times; give it once');
    expect(() => input({ name: '' }).text('name')).toThrow(WrongUsage);
    expect(() => input({}).need('name')).toThrow('--name is missing');
  });

  it('reads lists and switches from both', () => {
    expect(input({ route: 'a' }).list('route')).toEqual(['a']);
    expect(input({ route: ['a', 'b'] }).list('route')).toEqual(['a', 'b']);
    expect(input({}, { CPN_ROUTE: 'a, b' }).list('route')).toEqual(['a', 'b']);
    expect(input({ masquerade: false }, { CPN_MASQUERADE: 'yes' }).switch('masquerade', true)).toBe(false);
    expect(input({}, { CPN_MASQUERADE: 'no' }).switch('masquerade', true)).toBe(false);
    expect(input({}).switch('masquerade', true)).toBe(true);
    expect(() => input({}, { CPN_MASQUERADE: 'maybe' }).switch('masquerade')).toThrow(InvalidValue);
    expect([input({}).choice('masquerade'), input({ masquerade: false }).choice('masquerade')]).toEqual([
      undefined,
      false,
    ]);
  });

  it('names in a message what the value came from: the flag, the variable, or the file below both', () => {
    const wrong = { CPN_LISTEN_PORT: 'x' };
    const port = (given: Input) => () => given.number('listen-port', 1, 9);
    expect(port(input({}, wrong))).toThrow('CPN_LISTEN_PORT "x" is not a number from 1 to 9');
    expect(port(input({ 'listen-port': 'y' }, wrong))).toThrow('--listen-port "y" is not a number');
    expect(port(input({}).above(wrong))).toThrow('--listen-port "x" is not a number');
    expect(() => input({}, { CPN_NAME: '' }).text('name')).toThrow('CPN_NAME is empty');
    expect(() => input({}, { CPN_MASQUERADE: 'maybe' }).switch('masquerade')).toThrow('CPN_MASQUERADE "maybe"');
  });

  it('leaves values that may hold a comma whole', () => {
    expect(input({ route: 'a=1,2' }).each('route')).toEqual(['a=1,2']);
    expect(input({ route: ['a', 'b,c'] }).each('route')).toEqual(['a', 'b,c']);
    expect(input({}, { CPN_ROUTE: 'a, b' }).each('route')).toEqual(['a, b']);
    expect(input({}).each('route')).toEqual([]);
  });
});
