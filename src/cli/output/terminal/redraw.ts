import { setTimeout as sleep } from 'node:timers/promises';
import { untilInterrupted } from './until-interrupted.ts';

/** Milliseconds between two drawings. */
const pause = 2_000;
/** Where a terminal does not say how large it is. */
const usualRows = 24;

/**
 * Draws what `draw` gives, again and again until SIGINT, SIGTERM or a closed stdout: in place on a terminal,
 * elsewhere one text after another with an empty line between.
 */
export async function redraw(draw: () => Promise<string>): Promise<void> {
  await untilInterrupted(async (ended) => {
    for (let first = true; !ended.aborted; first = false) {
      const text = await draw();
      if (ended.aborted) break;
      process.stdout.write(
        process.stdout.isTTY ? frame(text, process.stdout.rows || usualRows) : `${first ? '' : '\n'}${text}\n`,
      );
      await sleep(pause, undefined, { signal: ended });
    }
  });
}

/**
 * The text as one write that replaces what a terminal of so many rows shows, line by line, so that nothing flickers. Lines that
 * are too long are cut by the terminal, which wraps lines again afterwards: a frame leaves no mode behind.
 */
export function frame(text: string, rows: number): string {
  const lines = text.split('\n');
  // The cursor stands below the text, for whatever comes after the last frame.
  const fit = Math.max(1, rows - 1);
  const shown = lines.length <= fit ? lines : [...lines.slice(0, fit - 1), `… ${lines.length - fit + 1} more lines`];
  // Cleared before, not after: at its end a line that was cut has the cursor on its last character.
  const body = shown.map((line) => `${clearLine}${line}\n`).join('');
  return `${unwrapped}${home}${body}${clearBelow}${wrapped}`;
}

/** ECMA-48's CUP, EL and ED, and DECAWM: understood by the Linux console and by every terminal that calls itself xterm. */
const home = '\x1b[H';
export const clearLine = '\x1b[K';
const clearBelow = '\x1b[J';
export const unwrapped = '\x1b[?7l';
export const wrapped = '\x1b[?7h';
