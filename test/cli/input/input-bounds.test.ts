import { describe, expect, it } from 'vitest';
import type { Flags } from '../../../src/cli/input/flags.ts';
import { Input } from '../../../src/cli/input/input.ts';
import { parseListenAddress, parseListenAddressOrSocket } from '../../../src/cli/input/listen-address.ts';
import { checkToken } from '../../../src/cli/input/secrets.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';

const flags = {
  count: { kind: 'text', summary: '' },
  list: { kind: 'list', summary: '' },
  on: { kind: 'switch', summary: '' },
} satisfies Flags;
const given = (values: object) => new Input({ ...values }, flags, {});
const inherited = (variables: Readonly<Record<string, string>>, below = {}) => new Input({}, flags, variables, below);

describe('the value of a flag', () => {
  it('is a number within both of its bounds', () => {
    for (const text of ['5', '10']) expect(given({ count: text }).number('count', 5, 10)).toBe(Number(text));
    for (const text of ['4', '11', '05', '5.0', '-5', '0x5', '1e1', ' 5', '', '99999999999'])
      expect(() => given({ count: text }).number('count', 5, 10)).toThrow();
  });

  it('is a time up to its bound', () => {
    const read = (text: string) => given({ count: text }).duration('count', 60_000);
    expect(['0s', '500ms', '20s', '60s', '1m'].map(read)).toEqual([0, 500, 20_000, 60_000, 60_000]);
    for (const text of ['61s', '2m', '20', 's', '01s', '1h', '-1s', '1.5s'])
      expect(() => read(text)).toThrow('is not a time');
  });

  it('is a period within both of its bounds', () => {
    const read = (text: string) => given({ count: text }).period('count', 3600, 86_400);
    expect(['60m', '1h', '24h', '1d'].map(read)).toEqual([3600, 3600, 86_400, 86_400]);
    for (const text of ['59m', '25h', '2d', '0h', '1', '1w']) expect(() => read(text)).toThrow('is not a time');
  });

  it('is on or off by each of the usual words, in any case', () => {
    for (const word of ['1', 'true', 'yes', 'on', 'YES', 'On'])
      expect(inherited({ CPN_ON: word }).choice('on')).toBe(true);
    for (const word of ['0', 'false', 'no', 'off', 'NO', 'Off'])
      expect(inherited({ CPN_ON: word }).choice('on')).toBe(false);
    for (const word of ['', '2', 'y', 'n', 'enabled']) expect(() => inherited({ CPN_ON: word }).choice('on')).toThrow();
    expect([inherited({}).choice('on'), inherited({}).switch('on', true)]).toEqual([undefined, true]);
    expect(inherited({ CPN_ON: 'no' }).switch('on', true)).toBe(false);
  });

  it('is a list of a variable, without blanks, and whole where it may have commas', () => {
    expect(inherited({ CPN_LIST: 'a, b ,c' }).list('list')).toEqual(['a', 'b', 'c']);
    expect(inherited({ CPN_LIST: 'a, b' }).each('list')).toEqual(['a, b']);
    expect(given({ list: ['a,b', 'c'] }).list('list')).toEqual(['a,b', 'c']);
  });

  it('is from the command line, then from the environment, then from a file below', () => {
    const [process, file] = [{ CPN_COUNT: 'variable' }, { CPN_COUNT: 'file' }];
    expect(new Input({ count: 'typed' }, flags, process, file).text('count')).toBe('typed');
    expect(inherited(process, file).text('count')).toBe('variable');
    expect(inherited({}, file).text('count')).toBe('file');
    expect(inherited(process).above(file).text('count')).toBe('variable');
  });

  it('is named in messages as it was given', () => {
    const both = new Input({ count: 'x' }, flags, { CPN_COUNT: 'y' });
    expect([both.nameOf('count'), inherited({ CPN_COUNT: 'y' }).nameOf('count')]).toEqual(['--count', 'CPN_COUNT']);
    // A file has flags without dashes, and no variables.
    expect(inherited({}, { CPN_COUNT: 'z' }).nameOf('count')).toBe('--count');
    expect([both.isTyped('count'), inherited({ CPN_COUNT: 'y' }).isTyped('count')]).toEqual([true, false]);
  });
});

describe('an address to listen on', () => {
  it.each([
    ['127.0.0.1:0', '127.0.0.1', 0],
    ['0.0.0.0:65535', '0.0.0.0', 65_535],
    ['[::1]:8787', '::1', 8787],
    ['localhost:80', 'localhost', 80],
  ])('%s', (text, host, port) => {
    expect(parseListenAddress('--listen', text)).toEqual({ host, port });
    expect(parseListenAddressOrSocket('--listen', text)).toEqual({ host, port, socketPath: null });
  });

  it.each([
    '8787',
    ':8787',
    '127.0.0.1',
    '127.0.0.1:',
    '127.0.0.1:65536',
    '127.0.0.1:080',
    '::1:8787',
    '[x]:1',
    'a:1:2',
  ])('%s is none', (text) => {
    expect(() => parseListenAddress('--listen', text)).toThrow('is not an address to listen on');
  });

  it('is a socket of Unix where it may be one', () => {
    expect(parseListenAddressOrSocket('--listen', 'unix:/run/x/api.sock')).toMatchObject({
      socketPath: '/run/x/api.sock',
    });
    expect(() => parseListenAddress('--metrics', 'unix:/run/x')).toThrow('is not an address to listen on');
  });
});

describe('a key or token', () => {
  const key = `cpn_${'a'.repeat(43)}`;

  it.each([key, `cpp_${'b'.repeat(43)}`, 'tok|9f8e7d', 'a.b~c+/=:-_'])('%s is taken', (text) => {
    expect(checkToken(new Secret(text), 'the key').reveal()).toBe(text);
  });

  it.each([
    [`${key} ${key}`, 'contains more than one key'],
    [`${key}\n${key}`, 'contains more than one key'],
    [`${key}${key}`, 'contains more than one key'],
    [`${key}cpn_x`, 'contains more than one key'],
    [`"${key}"`, 'is in quotation marks'],
    [`'${key}'`, 'is in quotation marks'],
    [`\`${key}\``, 'is in quotation marks'],
    [`${key}\u200b`, 'has an invisible character (U+200B)'],
    [`${key} x`, 'contains whitespace'],
    [`${key}é`, 'has a character that is not valid in a key'],
  ])('%j is refused by its fault', (text, fault) => {
    expect(() => checkToken(new Secret(text), 'the key')).toThrow(`the key ${fault}`);
  });
});
