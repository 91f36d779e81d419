import { printable } from '../../../core/errors/index.ts';
import { clearLine, unwrapped, wrapped } from './redraw.ts';

/** How a step ended: `open` is one that came to nothing, and is no failure. */
export type StepEnding = 'done' | 'failed' | 'open';

/** Where steps are shown: stderr, but for tests. */
export interface Screen {
  /** Whether a line that was written can be drawn over. */
  isLive(): boolean;
  write(text: string): void;
}

/** Styles the mark and the rest of a line, as the screen allows. */
export interface Paints {
  readonly marks: Readonly<Record<StepEnding, (mark: string) => string>>;
  dim(text: string): string;
}

const marks: Readonly<Record<StepEnding, string>> = { done: '✓', failed: '✗', open: '–' };
/** Milliseconds between two drawings of a step that goes on, which counts its seconds. */
const pause = 1_000;

/**
 * The step that is under way, as the last line on a terminal: drawn over as its seconds go by, and with a mark when it ended. The
 * cursor stands below it, for whatever an interrupted program leaves to the shell. Elsewhere a step is one line, when it begins.
 */
export class StepLine {
  readonly #screen: Screen;
  readonly #clock: () => number;
  readonly #paints: Paints;
  #running: { readonly step: string; readonly since: number; readonly timer: NodeJS.Timeout } | null = null;

  /** @param clock milliseconds of a monotonic clock */
  constructor(screen: Screen, clock: () => number, paints: Paints) {
    this.#screen = screen;
    this.#clock = clock;
    this.#paints = paints;
  }

  /** Shows that a step begins, and with it that the one before ended, and how. */
  begin(step: string, before: StepEnding = 'done'): void {
    this.end(before);
    const text = printable(step);
    if (!this.#screen.isLive()) {
      this.#screen.write(`${this.#paints.dim(`· ${text}`)}\n`);
      return;
    }
    const timer = setInterval(() => this.#screen.write(`${up}${this.#draw()}`), pause).unref();
    this.#running = { step: text, since: this.#clock(), timer };
    this.#screen.write(this.#draw());
  }

  /** Marks the step under way, if there is one. */
  end(ending: StepEnding): void {
    if (this.#running === null) return;
    const { step, timer } = this.#running;
    clearInterval(timer);
    const time = this.#elapsed(0.1, 1);
    const mark = this.#paints.marks[ending](marks[ending]);
    this.#screen.write(`${up}${clearLine}${mark} ${step}${time && this.#paints.dim(time)}\n`);
    this.#running = null;
  }

  /** Writes whole lines above the step under way, which goes on. */
  interrupt(text: string): void {
    if (this.#running === null) this.#screen.write(text);
    else this.#screen.write(`${up}${clearLine}${text}${this.#draw()}`);
  }

  /** One row, however long the text is: so that one row is enough to draw over. */
  #draw(): string {
    const text = this.#paints.dim(`… ${this.#running?.step ?? ''}${this.#elapsed(1, 0)}`);
    return `${unwrapped}${clearLine}${text}${wrapped}\n`;
  }

  #elapsed(least: number, digits: number): string {
    const seconds = (this.#clock() - (this.#running?.since ?? 0)) / 1000;
    return seconds < least ? '' : ` (${seconds.toFixed(digits)} s)`;
  }
}

/** To the beginning of the row above (ECMA-48's CPL is younger on the Linux console than CUU). */
const up = '\x1b[A\r';
