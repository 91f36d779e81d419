import { describe, expect, it } from 'vitest';
import { replyToBytes } from '../../../src/cli/api/show-reply.ts';

const reply = (body: string | Uint8Array, json = false) => ({
  status: 200,
  headers: { 'content-type': 'x/y', 'set-cookie': ['a', 'b'] },
  json,
  bytes: Buffer.from(body),
});
const show = (shown: ReturnType<typeof replyToBytes>) => shown && Buffer.from(shown).toString();

describe('a reply', () => {
  it('goes into a pipe untouched', () => {
    const bytes = Buffer.from([0, 0xff, 0x1b, 0x0a]);
    expect(replyToBytes(reply(bytes), { include: false, terminal: false })).toEqual(bytes);
    expect(show(replyToBytes(reply('{"a":1}', true), { include: false, terminal: false }))).toBe('{"a":1}');
  });

  it('has its status and every header in front when they are asked for', () => {
    expect(show(replyToBytes(reply('{}'), { include: true, terminal: false }))).toBe(
      'HTTP/1.1 200 OK\ncontent-type: x/y\nset-cookie: a\nset-cookie: b\n\n{}',
    );
  });

  it('is laid out for a person, with nothing that a terminal obeys', () => {
    const terminal = { include: false, terminal: true };
    expect(show(replyToBytes(reply('{"a":["\\u001b[2J\u202e\u009b"]}', true), terminal))).toBe(
      '{\n  "a": [\n    "\\u001b[2J\u{fffd}\u{fffd}"\n  ]\n}\n',
    );
    expect(show(replyToBytes(reply('a\tb\r\n\x1b[2Jc'), terminal))).toBe('a  b\n\u{fffd}[2Jc\n');
    expect(show(replyToBytes(reply('{broken', true), terminal))).toBe('{broken\n');
    expect(show(replyToBytes(reply(''), terminal))).toBe('');
  });

  it('is not written to a terminal when it is binary', () => {
    const terminal = { include: true, terminal: true };
    expect(replyToBytes(reply(Buffer.from([0xff])), terminal)).toBeNull();
    expect(replyToBytes(reply('a\0b'), terminal)).toBeNull();
  });
});
