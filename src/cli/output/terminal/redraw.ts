import { setTimeout as sleep } from 'node:timers/promises';

/** Milliseconds between two drawings. */
const pause = 2_000;
/** The rows of a terminal that does not report its size. */
const usualRows = 24;

/** Draws until SIGINT, SIGTERM or a closed stdout; in place on a terminal, else consecutively. */
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

/** One write replaces the rows without flicker. With wrapping off, the terminal cuts long lines. */
export function frame(text: string, rows: number): string {
  const lines = text.split('\n');
  // The cursor is below the text, for output after the last frame.
  const fit = Math.max(1, rows - 1);
  const shown = lines.length <= fit ? lines : [...lines.slice(0, fit - 1), `… ${lines.length - fit + 1} more lines`];
  // Clears before the text: after a cut line, the cursor is on its last character.
  const body = shown.map((line) => `${clearLine}${line}\n`).join('');
  return `${unwrapped}${home}${body}${clearBelow}${wrapped}`;
}

/** CUP, EL, ED (ECMA-48) and DECAWM. The Linux console and xterm-compatible terminals have them. */
const home = '\x1b[H';
export const clearLine = '\x1b[K';
const clearBelow = '\x1b[J';
export const unwrapped = '\x1b[?7l';
export const wrapped = '\x1b[?7h';

/** Runs `work` until SIGINT, SIGTERM or a closed stdout aborts its signal. Then ignores errors. */
export async function untilInterrupted(work: (ended: AbortSignal) => Promise<void>): Promise<void> {
  const ended = new AbortController();
  const end = () => ended.abort();
  process.once('SIGINT', end).once('SIGTERM', end);
  // A closed pipe, such as of `head`, ends the work.
  process.stdout.on('error', end);
  try {
    await work(ended.signal);
  } catch (error) {
    if (!ended.signal.aborted) throw error;
  } finally {
    process.off('SIGINT', end).off('SIGTERM', end);
  }
}
