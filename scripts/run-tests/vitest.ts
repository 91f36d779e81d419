import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { endMarked } from './end-marked.ts';
import { failure, REPORT_VARIABLE, type Report } from './report.ts';

/** Enough for the words of a teardown, or of a process that dies. */
const TAIL_LINES = 5;

/** Milliseconds within which vitest ends once it has written its report. */
const MOST_TEARDOWN = 60_000;

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** How many run side by side. */
let running = 0;

/**
 * Runs vitest with these arguments, shows its output, and returns the results with all other
 * failures.
 */
export async function runVitest(args: readonly string[]): Promise<Report> {
  const folder = mkdtempSync(join(tmpdir(), 'cpn-tests-'));
  const path = join(folder, 'report.json');
  let interrupted: NodeJS.Signals | undefined;
  let vitest: ChildProcess | undefined;
  // A terminal interrupts vitest too, whose teardowns need somewhere to print.
  const interrupt = (signal: NodeJS.Signals) => {
    interrupted = signal;
    if (signal !== 'SIGINT') vitest?.kill('SIGINT');
  };
  for (const signal of SIGNALS) process.on(signal, interrupt);
  running += 1;
  try {
    const reporters = ['--reporter=default', `--reporter=${join(import.meta.dirname, 'reporter.ts')}`];
    const color = process.stdout.isTTY ? ['--color'] : [];
    vitest = spawn('vitest', ['run', ...reporters, ...color, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      // Hundreds of processes run the same program: what one compiled, the next need not.
      env: { NODE_COMPILE_CACHE: join(folder, 'compiled'), ...process.env, [REPORT_VARIABLE]: path },
    });
    const clock = watchTeardowns(vitest, path);
    const { how, tail } = await watch(vitest).finally(() => clearInterval(clock));
    return explain(how, tail, path);
  } finally {
    // An interrupted vitest waits for nothing that its tests started, in sessions of their own.
    if (interrupted) await endMarked(`${REPORT_VARIABLE}=${path}`);
    for (const signal of SIGNALS) process.off(signal, interrupt);
    rmSync(folder, { recursive: true, force: true });
    running -= 1;
    // The last one ends this process: the others end what their tests started before.
    if (interrupted && running === 0) {
      process.stdout.write('\ninterrupted: nothing is proven\n');
      process.kill(process.pid, interrupted);
    }
  }
}

/** Ends a vitest whose teardowns do not end: all results are known once its report is there. */
function watchTeardowns(vitest: ChildProcess, path: string): NodeJS.Timeout {
  let reportedAt: number | undefined;
  return setInterval(() => {
    if (existsSync(path)) reportedAt ??= performance.now();
    if (reportedAt !== undefined && performance.now() - reportedAt > MOST_TEARDOWN) vitest.kill('SIGKILL');
  }, 1000);
}

/** Passes on what a process prints, until it ends. */
async function watch(child: ChildProcess): Promise<{ how: string; tail: string }> {
  // One for each output: which of them comes first is not certain.
  const tails = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.on('data', (data: Buffer) => {
      process[name].write(data);
      tails[name] = lastLines(tails[name] + data.toString());
    });
  }
  const closed = once(child, 'close');
  const [code, signal] = await once(child, 'exit');
  // A process that a test left behind may keep the pipes open.
  await Promise.race([closed, setTimeout(1000, undefined, { ref: false })]);
  child.stdout?.destroy();
  child.stderr?.destroy();
  const tail = [tails.stdout, tails.stderr].map((text) => text.trim()).join('\n');
  return { how: code === 0 ? '' : signal === null ? `exit status ${code}` : `ended by ${signal}`, tail };
}

function lastLines(text: string): string {
  // An unfinished or empty line is the last one.
  return text
    .split('\n')
    .slice(-TAIL_LINES - 1)
    .join('\n');
}

/**
 * The reporter sets the exit status to 0 once all results are written, so that any other status has
 * another cause.
 */
function explain(how: string, tail: string, path: string): Report {
  const text = stripVTControlCharacters(tail).trim();
  const report = readReport(path);
  if (report === undefined) {
    return { files: [], failures: [failure(`vitest: ${how || 'no report'}`, text)], isClosed: false };
  }
  const late = how === '' ? [] : [failure(`vitest: ${how} after its tests`, text)];
  const open = report.isClosed || how !== '' ? [] : [failure('vitest', 'its teardowns did not end')];
  const isNone = report.files.every(({ results }) => results.every(({ status }) => status === 'skipped'));
  const why = report.files.length === 0 ? 'no test file has this name' : 'all tests of these files are skipped';
  const none = isNone ? [failure('vitest: no test ran', why)] : [];
  return { ...report, failures: [...report.failures, ...late, ...open, ...none] };
}

function readReport(path: string): Report | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Report;
  } catch {
    return undefined;
  }
}
