import { describe, expect, it } from 'vitest';
import { table } from '../../src/cli/output.ts';
import { describe as describeChange } from '../../src/cli/show-pass.ts';
import { printable, quote } from '../../src/core/errors.ts';

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

  it('cannot hide a whole escape sequence in a cell', () => {
    expect(table(['name'], [['x\u001b[2Jy']]).split('\n')[1]).not.toContain('\u001b[2J');
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

describe('a change', () => {
  it('reads as one line: what, from what to what, why', () => {
    const change = {
      action: 'update',
      kind: 'sysctl',
      target: 'net.ipv4.ip_forward',
      before: '0',
      after: '1',
      reason: 'a connector forwards',
    } as const;
    expect(describeChange(change)).toBe('  ~ sysctl net.ipv4.ip_forward  0 → 1  (a connector forwards)');
  });
});
