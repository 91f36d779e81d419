import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { redraw, untilInterrupted } from '../../../../src/cli/output/terminal/redraw.ts';

const { stdout } = process;
const was = { isTTY: stdout.isTTY, rows: stdout.rows };
const signals = ['SIGINT', 'SIGTERM'] as const;
let said: string[];
let before: number[];
const count = () => signals.map((signal) => process.listenerCount(signal));

beforeEach(() => {
  said = [];
  before = count();
  vi.spyOn(stdout, 'write').mockImplementation((text) => said.push(String(text)) > 0);
});
afterEach(() => {
  vi.restoreAllMocks();
  Object.assign(stdout, was);
  expect(count()).toEqual(before);
});

/** Draws until a signal comes: while the first drawing is made, or once it is written. */
async function draw(isWritten: boolean, isTTY: boolean, rows: number | undefined) {
  Object.assign(stdout, { isTTY, rows });
  const interrupt = () => void process.emit('SIGINT', 'SIGINT');
  vi.mocked(stdout.write).mockImplementation((text) => {
    interrupt();
    return said.push(String(text)) > 0;
  });
  await redraw(async () => {
    if (!isWritten) interrupt();
    return Array.from({ length: 30 }, (_, line) => `line ${line}`).join('\n');
  });
  stdout.removeListener('error', stdout.listeners('error').at(-1) as () => void);
}

describe('a drawing that is repeated', () => {
  it('is plain text without a terminal, and none is written once it was interrupted', async () => {
    await draw(true, false, undefined);
    expect(said).toEqual([expect.stringMatching(/^line 0\n[\s\S]*line 29\n$/)]);
    said = [];
    await draw(false, false, undefined);
    expect(said).toEqual([]);
  });

  it('fits a terminal that does not report its size as one of 24 rows', async () => {
    for (const rows of [0, undefined]) {
      said = [];
      await draw(true, true, rows);
      expect(said[0]).toContain('… 8 more lines');
      expect(said[0]?.split('\n')).toHaveLength(24);
    }
  });
});

describe('work that a user interrupts', () => {
  it.each(signals)('ends with %s, and its failure by that is none', async (signal) => {
    let reached = false;
    await untilInterrupted(async (ended) => {
      process.emit(signal, signal);
      ended.throwIfAborted();
      reached = true;
    });
    expect(reached).toBe(false);
  });

  it('ends when its output is closed, such as by head', async () => {
    const listeners = stdout.listenerCount('error');
    const ended = await new Promise<boolean>((resolve) => {
      void untilInterrupted(async (signal) => {
        expect(stdout.listenerCount('error')).toBe(listeners + 1);
        stdout.listeners('error').at(-1)?.();
        await setImmediate();
        resolve(signal.aborted);
      });
    });
    expect(ended).toBe(true);
    stdout.removeListener('error', stdout.listeners('error').at(-1) as () => void);
  });

  it('fails as it does without a signal', async () => {
    await expect(untilInterrupted(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
    stdout.removeListener('error', stdout.listeners('error').at(-1) as () => void);
  });
});
