import { describe, expect, it } from 'vitest';
import { drawCode } from '../../../../src/cli/output/terminal/qr-code.ts';

describe('a QR code', () => {
  it('is as wide as it says that it is', () => {
    const text = 'x'.repeat(400);
    const rows = drawCode(text, 200).split('\n');
    const width = rows[0]?.length ?? 0;
    expect(rows.every((row) => row.length === width)).toBe(true);
    expect(drawCode(text, width)).toBe(drawCode(text, 200));
    expect(() => drawCode(text, width - 1)).toThrow(`is ${width} columns wide, this terminal ${width - 1}`);
  });

  it('holds 2,953 bytes and no more', () => {
    expect(drawCode('ä'.repeat(1476), 200)).not.toBe('');
    expect(() => drawCode(`${'ä'.repeat(1476)}xy`, 200)).toThrow('has 2954 bytes, more than a QR code holds (2953)');
  });
});
