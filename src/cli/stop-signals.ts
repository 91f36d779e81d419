import { once } from 'node:events';
import { Interrupted } from '../core/errors.ts';
import { endStep, note, progress } from './output.ts';

/** Returns when somebody asks the program to end. From then on a second signal ends it at once, as it usually does. */
export async function untilStopped(): Promise<void> {
  const heard = new AbortController();
  const { signal } = heard;
  await Promise.race([once(process, 'SIGTERM', { signal }), once(process, 'SIGINT', { signal })]);
  heard.abort();
}

/** What Ctrl-C, a terminal or an SSH session that is lost, and a service manager send. */
const endings = ['SIGINT', 'SIGHUP', 'SIGTERM'] as const;

/** How many deferrals are under way: one within another says nothing of its own. */
let deferrals = 0;

/** As {@link Tools.deferSignals}: further signals do not end it either, because half of the way back is worse than none. */
export async function deferSignals<T>(work: (interrupted: AbortSignal) => Promise<T>): Promise<T> {
  const ending = new AbortController();
  const isOutermost = deferrals === 0;
  deferrals += 1;
  const interrupt = (signal: string) => {
    if (ending.signal.aborted) return;
    if (isOutermost) progress(`taking the change back after ${signal}`, 'open');
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

/** Does `work`. A signal ends the program as usual, after it printed what to do next; work that defers signals is left to that. */
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
