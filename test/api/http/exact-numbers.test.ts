import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { parseJson } from '../../../src/api/http/body.ts';
import type { ReplyHead } from '../../../src/api/http/connection.ts';
import { source } from '../samples.ts';

const head = { statusCode: 200, headers: { 'content-type': 'application/json' }, body: Readable.from([]) };
const parse = (text: string) =>
  parseJson(head as unknown as ReplyHead, Buffer.from(text), { ...source, maxBytes: 1e6 });

describe('a whole number of a reply', () => {
  test.each([
    ['9007199254740991', 9_007_199_254_740_991],
    ['-9007199254740991', -9_007_199_254_740_991],
    ['9007199254740992', '9007199254740992'],
    ['9007199254740993', '9007199254740993'],
    ['-9007199254740993', '-9007199254740993'],
    ['12345678901234567890', '12345678901234567890'],
    ['1234567890123456', 1_234_567_890_123_456],
    ['0', 0],
    // These are no ids, and have no other form.
    ['1e300', 1e300],
    ['9007199254740993.0', 9_007_199_254_740_992],
    ['1.5', 1.5],
  ])('%s is read as %j, wherever it stands', (text, value) => {
    for (const [written, read] of [
      [` ${text}`, value],
      [`[${text}]`, [value]],
      [`[1,${text},\n${text}]`, [1, value, value]],
      [`{"id":${text}}`, { id: value }],
      [`{"a": {"b": [\t${text}]}, "c": "x"}`, { a: { b: [value] }, c: 'x' }],
    ])
      expect(parse(String(written))).toEqual(read);
  });

  test('in a text is no number', () => {
    const text = 'the id:9007199254740993, [9007199254740993]';
    expect(parse(JSON.stringify({ text }))).toEqual({ text });
  });
});
