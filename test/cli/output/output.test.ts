import { describe, expect, it, vi } from 'vitest';
import { describeChange } from '../../../src/cli/output/change-text.ts';
import { describeBytes, green, table } from '../../../src/cli/output/output.ts';

import { printable, quote } from '../../../src/core/errors/index.ts';

const hostile = 'a\u001b[31mred\u0007\u009b2J\u202egnp.exe\r\nroot# \u200b';

describe('what came over the wire', () => {
  it('cannot look like another row of a table, by spaces that reach into the next line', () => {
    const shown = table(['name', 'id'], [[`x${' '.repeat(60)}764  2026-11-22  user.create`, '7']]);
    expect(shown.split('\n')[1]).toBe('x 764 2026-11-22 user.create  7');
  });

  it('cannot make a terminal obey', () => {
    for (const shown of [
      printable(hostile),
      quote(hostile),
      table(['name'], [[hostile]])
        .split('\n')
        .slice(1)
        .join(''),
    ]) {
      expect(shown).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    }
    const line = describeChange({
      action: 'add',
      kind: 'peer',
      target: hostile,
      before: null,
      after: { endpoint: hostile },
      reason: 'x',
    });
    expect(line).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });

  it('cannot have a character that is not seen', () => {
    for (const code of [0xad, 0x34f, 0x115f, 0x1160, 0x17b4, 0x180b, 0x200b, 0x2800, 0x3164, 0xfe0f, 0xffa0, 0xe0100]) {
      const name = `web${String.fromCodePoint(code)}1`;
      expect([code, printable(name), table(['name'], [[name]]).split('\n')[1]]).toEqual([
        code,
        'web\ufffd1',
        'web\ufffd1',
      ]);
    }
  });

  it('keeps emoji and letters with marks, but no joiner or selector outside of an emoji', () => {
    const readable = 'Zürich e\u0301 東京 👩‍🚀 ❤️ 1️⃣ 🇩🇪 👍🏽 🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}';
    expect(printable(readable)).toBe(readable);
    expect(printable('a\u200db 1\ufe0f 🏠\u200d🏠 👩‍🚀\u200d\u3164')).toBe(
      'a\ufffdb 1\ufffd 🏠\ufffd🏠 👩‍🚀\ufffd\ufffd',
    );
  });

  it('cannot hide a whole escape sequence in a cell', () => {
    expect(table(['name'], [['x\u001b[2Jy']]).split('\n')[1]).not.toContain('\u001b[2J');
  });

  it('cannot style a cell, and our own styling goes around what is shown of it', () => {
    expect(table(['name'], [['x\u001b[8my']]).split('\n')[1]).toBe('x\ufffd[8my');
    const red = (text: string) => `\u001b[31m${text}\u001b[39m`;
    const rows = table(
      ['name', 'id'],
      [
        [['x\u001b[8my', red], '7'],
        ['longer-name', '8'],
      ],
    )
      .split('\n')
      .slice(1);
    expect(rows).toEqual(['\u001b[31mx\ufffd[8my\u001b[39m       7', 'longer-name  8']);
  });

  it('cannot break a table', () => {
    expect(
      table(
        ['name', 'address'],
        [
          ['a\nb', '10.0.0.1'],
          ['longer name', '10.0.0.2'],
        ],
      ).split('\n'),
    ).toHaveLength(3);
  });
});

describe('a table', () => {
  it('has its columns two spaces apart', () => {
    expect(
      table(
        ['peer', 'state'],
        [
          ['edge', 'up'],
          ['a-long-name', 'down'],
        ],
      ),
    ).toBe('peer         state\nedge         up\na-long-name  down');
  });
});

it.each([
  [[true, true], true],
  [[true, false], false],
  [[false, true], false],
] as const)('colours are for a terminal with output and errors: %j', (are, isColoured) => {
  const streams = [process.stdout, process.stderr] as const;
  const were = streams.map((stream) => stream.isTTY);
  vi.stubEnv('NO_COLOR', undefined);
  vi.stubEnv('FORCE_COLOR', '1');
  streams.forEach((stream, at) => void Object.assign(stream, { isTTY: are[at] }));
  const text = green('up');
  streams.forEach((stream, at) => void Object.assign(stream, { isTTY: were[at] }));
  vi.unstubAllEnvs();
  expect(text !== 'up').toBe(isColoured);
});

it.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1024, '1.0 KiB'],
  [1536, '1.5 KiB'],
  [1024 ** 2, '1.0 MiB'],
  [5 * 1024 ** 4, '5.0 TiB'],
  [1024 ** 5, '1024.0 TiB'],
])('%i bytes are %s', (bytes, text) => {
  expect(describeBytes(bytes)).toBe(text);
});
