import { printable } from '../../../core/errors/index.ts';
import { clearLine, unwrapped, wrapped } from './redraw.ts';

/** The end of a step. `open` means without a result, which is no failure. */
export type StepEnding = 'done' | 'failed' | 'open';

/** The output of steps: stderr, except in tests. */
export interface Screen {
  /** True if a written line can be redrawn. */
  isLive(): boolean;
  write(text: string): void;
}

/** Styles the mark and the rest of a line, as far as the screen supports it. */
export interface Paints {
  readonly marks: Readonly<Record<StepEnding, (mark: string) => string>>;
  dim(text: string): string;
}

const marks: Readonly<Record<StepEnding, string>> = { done: '✓', failed: '✗', open: '–' };
/** Milliseconds between two redraws of a running step, which show its seconds. */
const pause = 1_000;

/**
 * The last line on a terminal, redrawn each second. The cursor is below it, so that an interrupted
 * program leaves a clean prompt. Elsewhere a step is one line, printed at its start.
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

  /** Shows a new step, and how the previous one ended. */
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

  end(ending: StepEnding): void {
    if (this.#running === null) return;
    const { step, timer } = this.#running;
    clearInterval(timer);
    const time = this.#elapsed(0.1, 1);
    const mark = this.#paints.marks[ending](marks[ending]);
    this.#screen.write(`${up}${clearLine}${mark} ${step}${time && this.#paints.dim(time)}\n`);
    this.#running = null;
  }

  /** Writes whole lines above the current step, which continues. */
  interrupt(text: string): void {
    if (this.#running === null) this.#screen.write(text);
    else this.#screen.write(`${up}${clearLine}${text}${this.#draw()}`);
  }

  /** Stays on one row, however long the text, so that redrawing one row suffices. */
  #draw(): string {
    const text = this.#paints.dim(`… ${this.#running?.step ?? ''}${this.#elapsed(1, 0)}`);
    return `${unwrapped}${clearLine}${text}${wrapped}\n`;
  }

  #elapsed(least: number, digits: number): string {
    const seconds = (this.#clock() - (this.#running?.since ?? 0)) / 1000;
    return seconds < least ? '' : ` (${seconds.toFixed(digits)} s)`;
  }
}

/** To the start of the row above. The Linux console supported CUU earlier than CPL (ECMA-48). */
const up = '\x1b[A\r';
