import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runContainer } from './container.ts';
import { cache, findImage } from './image.ts';
import { type Kind, prepareJob } from './job.ts';
import { runMachine } from './machine.ts';

/** How many runs are kept, each with its console and logs. */
const kept = 6;

/** The traces of a run: `console`, and in `out` the results with the logs of the steps. */
export interface Traces {
  readonly kind: Kind;
  readonly console: string;
  readonly out: string;
}

/**
 * Runs the scenarios of `test/vm/guest` to their ends, one after the other, each on a host of its own, and returns what each left.
 * When `signal` aborts, it kills the host, removes its files and throws the reason.
 */
export async function runScenarios(
  kinds: readonly Kind[],
  print: (text: string) => void,
  signal: AbortSignal,
): Promise<Traces[]> {
  const image = findImage();
  const runs = join(cache, 'runs');
  mkdirSync(runs, { recursive: true });
  const work = mkdtempSync(join(tmpdir(), 'cpn-vm-'));
  const left: Traces[] = [];
  try {
    print('building the package, in two versions');
    const job = join(work, 'job');
    prepareJob(job, work);
    for (const kind of kinds) {
      const folder = mkdtempSync(join(runs, `${kind}-`));
      const traces = { kind, console: join(folder, 'console.log'), out: join(folder, 'out') };
      print(`starting the ${kind === 'vm' ? 'machine' : 'container'}; its console is ${traces.console}`);
      await (kind === 'vm' ? runMachine : runContainer)(image, { ...traces, job, work, signal });
      left.push(traces);
    }
  } finally {
    // Processes of a killed container may still end.
    rmSync(work, { recursive: true, force: true, maxRetries: 5 });
    forgetOldRuns(runs);
  }
  return left;
}

function forgetOldRuns(runs: string): void {
  const age = (name: string) => statSync(join(runs, name)).mtimeMs;
  const newestFirst = readdirSync(runs).sort((a, b) => age(b) - age(a));
  for (const old of newestFirst.slice(kept)) rmSync(join(runs, old), { recursive: true, force: true });
}
