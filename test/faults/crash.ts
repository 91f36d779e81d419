import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { REPOSITORY } from '../lab/built-program.ts';
import type { Host } from '../lab/host.ts';
import type { Lab } from '../lab/lab.ts';

/** A place in a program where a crash could come: before it changes something, or after the last that it changes. */
export interface Checkpoint {
  /** Its number among all, counted from 1. */
  readonly at: number;
  /** What is done there, such as `rename state/cpn0.json` or `spawn wg`. */
  readonly name: string;
}

/** The environment of a program: to crash at a checkpoint, to list its checkpoints, or to run with others a hundred times. */
export interface Start {
  readonly env: Readonly<Record<string, string>>;
}

/** For a program that gets `signal` at a checkpoint. */
export function crashAt({ at }: Checkpoint, signal: NodeJS.Signals = 'SIGKILL'): Start {
  return { env: { ...preloaded, KILL_AT: String(at), KILL_WITH: signal } };
}

/** For a program that is killed once it has done this for the first time, such as `rename cpn0.json`. */
export function crashAfter(what: string): Start {
  return { env: { ...preloaded, STOP_AT: what, STOP_AFTER: '1', KILL_WITH: 'SIGKILL' } };
}

/**
 * Runs `work`, which starts a program on `host` with the given environment, and returns the checkpoints to try: those
 * before each change, and the last one. A crash after one change is the same as a crash before the next, and an fsync
 * is no change while the kernel runs.
 */
export async function listCheckpoints(
  host: Host,
  lab: Lab,
  work: (listing: Start) => Promise<unknown>,
): Promise<Checkpoint[]> {
  const path = join(lab.folder, `checkpoints-${host.name}`);
  await work({ env: { ...preloaded, CHECKPOINTS: path } });
  const lines = (await readFile(path, 'utf8')).trim().split('\n');
  await rm(path);
  const all = lines.map((line, index) => ({ at: index + 1, name: line.replace(`${host.folder}/`, '') }));
  const begun = new Set<string>();
  // Each is reported twice, before and after.
  const begins = ({ name }: Checkpoint) => !begun.delete(name) && begun.add(name);
  const isChange = (checkpoint: Checkpoint) => begins(checkpoint) && !checkpoint.name.startsWith('fsync ');
  return all.filter((checkpoint) => isChange(checkpoint) || checkpoint === all.at(-1));
}

/** A step of the replacement of a file, which ends with a rename of the file itself. */
const stepOfReplacement =
  /^((unlink|link|write) (state\/cpn0\.json(\.previous)?|etc\/wireguard\/cpn0\.conf|run\/cpn\/cpn0\.notes\.json)|rename state\/cpn0\.json\.previous)$/;

/** The same of a file for other programs: what comes next may be another file of its folder. */
const stepOfServing = /^(?:unlink|write) (run\/cpn\/serving\/.+\/.+)$/;

/** Whether the replacement of a file that begins or goes on here ends with a rename. */
function leadsToRename([{ name }, ...next]: readonly [Checkpoint, ...Checkpoint[]]): boolean {
  const [, served] = stepOfServing.exec(name) ?? [];
  if (served !== undefined)
    return next.find((each) => each.name.replace(/^(unlink|write) /, '') !== served)?.name === `rename ${served}`;
  if (!stepOfReplacement.test(name)) return false;
  return next.find((each) => !stepOfReplacement.test(each.name))?.name.startsWith('rename ') ?? false;
}

/** The same without those at which a crash leaves a host as one at another does. The last is never left out. */
export function withoutRepeats(checkpoints: readonly Checkpoint[]): Checkpoint[] {
  const last = checkpoints.length - 1;
  return checkpoints.filter((_, index) => index === last || !isRepeat(checkpoints, index));
}

/** Programs that observe the host, and change it in a pass. */
const tool = /^spawn (wg|ip|nft)$/;

function isRepeat(checkpoints: readonly Checkpoint[], index: number): boolean {
  const [{ at, name }, before] = [checkpoints[index] as Checkpoint, checkpoints[index - 1]];
  if (before === undefined) return false;
  // A rename leaves nothing behind that is to be removed.
  if (name.startsWith('unlink ')) return before.name === name.replace('unlink', 'rename');
  if (!name.startsWith('spawn ')) return false;
  // Tools that start side by side only observe, and one of several alike changes something at most.
  if (before.name === name || (before.at === at - 1 && before.name.startsWith('spawn '))) return true;
  const locked = checkpoints.findIndex((each) => each.name === 'write run/cpn/lock');
  return index < locked && tool.test(name) && checkpoints.slice(0, index).some((each) => tool.test(each.name));
}

/**
 * The same with the rename of a file for all steps of its replacement: crash-passes kills `cpn reconcile` at each of them, and
 * test/store/crash.test.ts the store.
 */
export function withoutSteps(checkpoints: readonly Checkpoint[]): Checkpoint[] {
  return withoutRepeats(
    checkpoints.filter((checkpoint, index) => !leadsToRename([checkpoint, ...checkpoints.slice(index + 1)])),
  );
}

const preloaded = { NODE_OPTIONS: `--require=${join(REPOSITORY, 'test', 'lab', 'kill-at.cjs')}` };

/** Whether a host matches the newest map. */
export async function isConverged(host: Host): Promise<boolean> {
  return (await host.cpn(['plan'], { allowFailure: true })).exitCode === 0;
}

/** Failures after which it is no use to go on. */
const most = 8;

/**
 * Does `work` for each checkpoint, shared out among `workers`, each of which does one after another. Goes on where some fail, and
 * fails at the end with these.
 */
export async function atEach<Worker>(
  checkpoints: readonly Checkpoint[],
  workers: readonly Worker[],
  work: (checkpoint: Checkpoint, worker: Worker) => Promise<unknown>,
): Promise<void> {
  const failures: string[] = [];
  const rest = checkpoints.values();
  const share = async (worker: Worker) => {
    for (const checkpoint of rest) {
      await work(checkpoint, worker).catch((error) =>
        failures.push(`${checkpoint.at} ${checkpoint.name}: ${describe(error)}`),
      );
      if (failures.length >= most) return;
    }
  };
  await Promise.all(workers.map(share));
  if (failures.length > 0) throw new Error(`it went wrong at ${failures.length} checkpoints:\n${failures.join('\n')}`);
}

/** What went wrong, and where in a test. */
function describe(error: Error): string {
  const frames = error.stack?.match(/^ +at .*test\/faults\/.*$/gm) ?? [];
  return [error.message, ...frames.slice(0, 2)].join('\n');
}
