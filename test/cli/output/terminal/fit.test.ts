import { describe, expect, it } from 'vitest';
import { table } from '../../../../src/cli/output/output.ts';
import { cut, fold, widthOf } from '../../../../src/cli/output/terminal/fit.ts';

describe('a table on a narrow terminal', () => {
  const header = ['peer', 'type', 'address', 'endpoint', 'public key'];
  const key = 'cTHGxLGXe6TnRPWRj7O6bUyVVkJuhSPVSyzZgF7xv1E=';
  const rows = [
    ['edge-1', 'connector', '10.77.0.1', '203.0.113.11:51820', key],
    ['a-name-of-a-peer-that-is-rather-long', 'admin_device', '10.77.0.2', '-', key],
  ];
  const widest = (text: string) => Math.max(...text.split('\n').map(widthOf));

  it('is whole without a terminal', () => {
    expect(table(header, rows, { cut: { 'public key': 12 } }, null)).toContain(key);
  });

  it('shortens names and keys first', () => {
    const text = table(header, rows, { cut: { 'public key': 12, peer: 12 } }, 100);
    expect(widest(text)).toBeLessThanOrEqual(100);
    expect(text).toMatch(/a-name-of-a\S*…/);
    expect(text).toContain('cTHGxLGXe6');
    expect(text.split('\n')).toHaveLength(3);
  });

  it.each([40, 60, 80])('leaves columns out, then folds rows, at %d columns', (columns) => {
    const text = table(header, rows, { cut: { 'public key': 12, peer: 12 }, hide: ['type'] }, columns);
    expect(widest(text)).toBeLessThanOrEqual(columns);
    expect(text).toMatch(/10\.77\.0\.1/);
    expect(text).toMatch(/203\.0\.113\.11:51820/);
    expect(text).not.toContain(key);
    const [, ...lines] = text.split('\n');
    expect(lines.filter((line) => !line.startsWith('    '))).toHaveLength(2);
  });

  it('counts letters of other scripts as the columns that they take', () => {
    expect([widthOf('北京'), widthOf('Zoe\u0308'), widthOf('💻'), widthOf('\u001b[31mred\u001b[39m')]).toEqual([
      4, 3, 2, 3,
    ]);
    expect(cut('北京上海', 5)).toBe('北京…');
    const [, one = '', other = ''] = table(
      ['name', 'id'],
      [
        ['北京', '1'],
        ['abcd', '2'],
      ],
    ).split('\n');
    expect([one, other]).toEqual(['北京  1', 'abcd  2']);
  });

  it('folds sentences between words, and no word', () => {
    expect(fold('one two three four', 9)).toBe('one two\n  three\n  four');
    expect(fold('a-word-that-is-longer', 9)).toBe('a-word-that-is-longer');
    expect(fold('one two', null)).toBe('one two');
    expect(fold('    one two', 8, 4)).toBe('    one\n    two');
  });
});

describe('a table that is too wide', () => {
  it('folds the last columns in their order, by their titles, and without empty cells', () => {
    const rows = [
      ['edge-1', '10.77.0.1', '203.0.113.11:51820', 'connected'],
      ['laptop', '10.77.0.2', '-', ''],
    ];
    const text = table(['peer', 'address', 'endpoint', 'state'], rows, {}, 30);
    expect(text.replace(/\s+/g, ' ')).toBe(
      'peer address edge-1 10.77.0.1 endpoint 203.0.113.11:51820 · state connected laptop 10.77.0.2',
    );
  });

  it('gives a column that was cut its room back where hiding another one makes it', () => {
    const name = 'a-name-of-twenty-two-c';
    const text = table(['peer', 'type', 'id'], [[name, 'x'.repeat(30), '1']], { cut: { peer: 5 }, hide: ['type'] }, 32);
    expect(text.split('\n')).toEqual(['peer                    id', `${name}  1`]);
  });
});
