import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { StepLine } from '../../../../src/cli/output/terminal/step-line.ts';

let written = '';
let clock = 0;

beforeEach(() => {
  vi.useFakeTimers();
  written = '';
  clock = 0;
});

afterEach(() => vi.useRealTimers());

function makeLine(isLive: boolean): StepLine {
  const plain = (text: string) => text;
  const write = (text: string) => {
    written += text;
  };
  const screen = { isLive: () => isLive, write };
  return new StepLine(screen, () => clock, { marks: { done: plain, failed: plain, open: plain }, dim: plain });
}

function pass(milliseconds: number): void {
  clock += milliseconds;
  vi.advanceTimersByTime(milliseconds);
}

/** What a terminal shows after all that was written: it knows "up a row" and "clear the rest of the row". */
function screen(): string[] {
  const rows: string[] = [''];
  let row = 0;
  for (const [token] of written.matchAll(/\p{Cc}\[[?0-9;]*[A-Za-z]|./gsu)) {
    if (token === '\x1b[A') row -= 1;
    else if (token === '\n') row += 1;
    else if (token === '\x1b[K') rows[row] = '';
    else if (!/\p{Cc}/u.test(token)) rows[row] = (rows[row] ?? '') + token;
  }
  expect(row).toBe(rows.length);
  return rows;
}

describe('steps on a terminal', () => {
  it('show which one is under way, for how long, and how each ended', () => {
    const line = makeLine(true);
    line.begin('making the key pair');
    expect(screen()).toEqual(['… making the key pair']);
    line.begin('enrolling at https://cp.example.net');
    expect(screen()).toEqual(['✓ making the key pair', '… enrolling at https://cp.example.net']);
    pass(2000);
    expect(screen().at(-1)).toBe('… enrolling at https://cp.example.net (2 s)');
    pass(340);
    line.begin('waiting for a handshake');
    line.begin('trying again', 'open');
    line.end('failed');
    expect(screen()).toEqual([
      '✓ making the key pair',
      '✓ enrolling at https://cp.example.net (2.3 s)',
      '– waiting for a handshake',
      '✗ trying again',
    ]);
  });

  it('go on below what is said meanwhile, and take no time when they are over', () => {
    const line = makeLine(true);
    line.begin('enrolling');
    line.interrupt('warning: it is slow\n');
    expect(screen()).toEqual(['warning: it is slow', '… enrolling']);
    line.end('done');
    line.end('failed');
    pass(5000);
    line.interrupt('joined\n');
    expect(screen()).toEqual(['warning: it is slow', '✓ enrolling', 'joined']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('never obey what a peer is called', () => {
    const line = makeLine(true);
    line.begin('waiting for \x1b[2Jedge-1\nedge-2');
    expect(screen()).toEqual(['… waiting for \ufffd[2Jedge-1\ufffdedge-2']);
    line.end('done');
  });
});

it('elsewhere steps are a line each, and nothing is drawn over', () => {
  const line = makeLine(false);
  line.begin('making the key pair');
  pass(3000);
  line.begin('enrolling');
  line.interrupt('warning: it is slow\n');
  line.end('failed');
  expect(written).toBe('· making the key pair\n· enrolling\nwarning: it is slow\n');
});
