import { describe, expect, it } from 'vitest';
import { transferMeter } from '../../../src/cli/api/transfer-meter.ts';

/** What a meter says of ten parts of 1 MiB, one every `pauseMs`. */
function measure(isTTY: boolean, pauseMs: number): string {
  let now = 0;
  let said = '';
  const write = (text: string) => {
    said += text;
  };
  const meter = transferMeter('sent', 10 * 1024 * 1024, { isTTY, write }, () => now);
  for (let part = 0; part < 10; part++) {
    now += pauseMs;
    meter.add(1024 * 1024);
  }
  meter.end();
  return said;
}

describe('a transfer', () => {
  it('says nothing when it is over soon', () => {
    expect([measure(true, 1), measure(false, 100)]).toEqual(['', '']);
  });

  it('is one line on a terminal, which is gone at the end', () => {
    const said = measure(true, 150);
    expect(said).toContain('\r· sent 2.0 MiB of 10.0 MiB\x1b[K\r');
    expect(said).not.toContain('\n');
    expect(said.endsWith('\r\x1b[K')).toBe(true);
  });

  it('is plain lines elsewhere', () => {
    expect(measure(false, 2500)).toBe([2, 4, 6, 8, 10].map((done) => `· sent ${done}.0 MiB of 10.0 MiB\n`).join(''));
  });
});
