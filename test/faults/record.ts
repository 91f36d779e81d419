import { writeFileSync } from 'node:fs';
import { inject } from 'vitest';
import { faultOf } from './catalogue.ts';
import type { Losses } from './loss-meter.ts';
import { pathOfRow, type Row } from './row.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of a run's rows. */
    faultRows: string;
  }
}

/** Records the phases of a fault, in this order. Times are for the table; no test asserts one. */
export interface Recorder {
  /** To be called at the moment of the injection, with a short description. */
  injected(how: string): void;
  /** The fault was noticed: by the daemon, or by the command that met it. */
  detected(): void;
  /** The host has recovered; `afterMs` is the slowest of many injections. */
  repaired(afterMs?: number): void;
  /** What the untouched tunnels lost, by their meters. */
  lost(...losses: readonly Losses[]): void;
}

/**
 * Runs `work`, which injects fault `number`, and writes its row. The fault is survived when `work` succeeds, so all checks
 * belong inside. A fault may have several rows.
 */
export async function injecting(number: number, work: (row: Recorder) => Promise<unknown>): Promise<void> {
  const { reason, name } = faultOf(number);
  if (reason !== undefined) throw new Error(`fault ${number} (${name}) has a reason for having no row: ${reason}`);
  const path = pathOfRow(inject('faultRows'), number);
  let injectedAt: number | undefined;
  let row: Row = { fault: number, how: '', detectedMs: null, repairedMs: null, lost: null, survived: false };
  const write = (facts: Partial<Row>): void => {
    row = { ...row, ...facts };
    writeFileSync(path, JSON.stringify(row));
  };
  const sinceInjection = (): number => {
    if (injectedAt === undefined) throw new Error(`fault ${number} (${name}) was not injected yet`);
    return Math.round(performance.now() - injectedAt);
  };
  await work({
    injected(how) {
      if (injectedAt !== undefined)
        throw new Error(`fault ${number} (${name}) was injected already: one row, one injection`);
      injectedAt = performance.now();
      write({ how });
    },
    detected: () => write({ detectedMs: sinceInjection() }),
    repaired: (afterMs) => write({ repairedMs: afterMs ?? sinceInjection() }),
    lost: (...losses) => write({ lost: losses.reduce((sum, { lost }) => sum + lost, 0) }),
  });
  sinceInjection();
  write({ survived: true });
}
