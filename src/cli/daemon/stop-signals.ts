import { once } from 'node:events';
import { Interrupted } from '../../core/errors/index.ts';
import { endStep, note, progress } from '../output/output.ts';

/** Resolves at the first SIGTERM or SIGINT. A second signal ends the process immediately. */
export async function untilStopped(): Promise<void> {
  const received = new AbortController();
  const { signal } = received;
  await Promise.race([once(process, 'SIGTERM', { signal }), once(process, 'SIGINT', { signal })]);
  received.abort();
}

/** The signals of Ctrl-C, of a lost terminal or SSH session, and of a service manager. */
const endings = ['SIGINT', 'SIGHUP', 'SIGTERM'] as const;

/** The number of active deferrals. A nested deferral prints nothing. */
let deferrals = 0;

/** As {@link Tools.deferSignals}. Ignores further signals: half a rollback is worse than none. */
export async function deferSignals<T>(work: (interrupted: AbortSignal) => Promise<T>): Promise<T> {
  const ending = new AbortController();
  const isOutermost = deferrals === 0;
  deferrals += 1;
  const interrupt = (signal: string) => {
    if (ending.signal.aborted) return;
    if (isOutermost) progress(`rolling back after ${signal}`, 'open');
    ending.abort(new Interrupted(signal));
  };
  for (const signal of endings) process.on(signal, interrupt);
  try {
    return await work(ending.signal);
  } finally {
    deferrals -= 1;
    for (const signal of endings) process.off(signal, interrupt);
  }
}

/** A signal during `work` prints `next` and ends the program, unless the work defers signals. */
export async function explainEnding<T>(next: string, work: () => Promise<T>): Promise<T> {
  const end = (signal: NodeJS.Signals) => {
    if (process.listenerCount(signal) > 1) return;
    endStep('open');
    note(next);
    process.off(signal, end);
    process.kill(process.pid, signal);
  };
  for (const signal of endings) process.on(signal, end);
  try {
    return await work();
  } finally {
    for (const signal of endings) process.off(signal, end);
  }
}
