import { fstatSync } from 'node:fs';
import { constants } from 'node:os';
import { platform } from 'node:process';
import { CommandFailed } from '../../core/errors/index.ts';
import { type AnonymousFile, checkUncut, readAnonymousFile } from './anonymous-file.ts';
import { describeFailure, formatCommand, type ProcessResult, summarizeStderr } from './command-error.ts';
import type { Tool } from './find-tool.ts';
import { OutputCache } from './output-cache.ts';
import { defaultDeadlineMs, maxOutput, maxStderr, publishCheckpoint, type RunOptions } from './run-options.ts';
import type { ShellPool } from './shell-pool.ts';

/** The tools of a pass, which print little and end soon. */
const pooled: ReadonlySet<Tool> = new Set<Tool>(['wg', 'ip', 'nft']);

/** Runs a tool in a shell of the pool; null where there is none for it. */
export async function runInShell(
  shells: ShellPool,
  path: string,
  tool: Tool,
  args: readonly string[],
  { outputCache, input = '', deadlineMs = defaultDeadlineMs, allowExitCodes = [] }: RunOptions,
): Promise<string | null> {
  if (!pooled.has(tool) || platform !== 'linux') return null;
  return shells.use([path, ...args], async (shell) => {
    publishCheckpoint(tool);
    const answer = await shell.run([path, ...args], input, deadlineMs);
    publishCheckpoint(tool);
    // What only observes runs again.
    if (answer === null && outputCache !== undefined) return null;
    const limits = { deadlineMs, maxOutput };
    const fail = (ending: Partial<ProcessResult>, stderr = '') =>
      new CommandFailed(
        formatCommand(tool, args),
        ending.exitCode ?? null,
        describeFailure({ timedOut: false, isMaxBuffer: false, ...ending }, stderr, limits),
      );
    if (answer === null) throw fail({ signal: 'the shell that ran it was ended' });
    const { exitCode, stdout, stderr } = answer;
    if (exitCode === null) throw fail({ timedOut: true });
    if (exitCode !== 0 && !allowExitCodes.includes(exitCode)) {
      const signal = signalOf(exitCode);
      if (signal === 'SIGXFSZ') throw fail({ isMaxBuffer: true });
      throw fail(signal ? { signal } : { exitCode }, summarizeStderr(readAnonymousFile(stderr, maxStderr), input));
    }
    return readOutput(stdout, outputCache ?? new OutputCache(), tool, args);
  });
}

/** The signal that ended a tool, by the exit code that a shell makes of it: 128 and its number. */
function signalOf(exitCode: number): string | undefined {
  return Object.entries(constants.signals).find(([, number]) => exitCode === 128 + number)?.[0];
}

/** Reads the output of a tool from its file. @throws CommandFailed when it is too long @throws DiskFailed when it may be cut */
export async function readOutput(
  file: AnonymousFile,
  known: OutputCache,
  tool: Tool,
  args: readonly string[],
): Promise<string> {
  checkUncut(file);
  const { size } = fstatSync(file.fd);
  if (size <= maxOutput) return known.read(file);
  const ending = { timedOut: false, isMaxBuffer: true };
  throw new CommandFailed(formatCommand(tool, args), null, describeFailure(ending, '', { deadlineMs: 0, maxOutput }));
}
