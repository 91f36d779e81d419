import { fstatSync } from 'node:fs';
import { constants } from 'node:os';
import { platform } from 'node:process';
import { CommandFailed } from '../../core/errors/index.ts';
import { type AnonymousFile, checkUncut, readAnonymousFile } from './anonymous-file.ts';
import { describeFailure, formatCommand, type ProcessResult, summarizeStderr } from './command-error.ts';
import type { Tool } from './find-tool.ts';
import { OutputCache } from './output-cache.ts';
import {
  defaultDeadlineMs,
  maxAnswers,
  maxOutput,
  maxStderr,
  publishCheckpoint,
  type ToolOptions,
} from './run-options.ts';
import type { ShellPool, StandingShell } from './shell-pool.ts';

/** The tools of a pass, which print little and end soon. */
const pooled: ReadonlySet<Tool> = new Set<Tool>(['wg', 'ip', 'nft', 'busctl']);

/** Runs a tool in a shell of the pool. Null if no shell can run it: the caller spawns the tool. */
export async function runInShell(
  shells: ShellPool,
  path: string,
  tool: Tool,
  args: readonly string[],
  options: ToolOptions,
): Promise<string | null> {
  if (!pooled.has(tool) || platform !== 'linux') return null;
  const { outputCache, input = '', deadlineMs = defaultDeadlineMs, allowExitCodes = [] } = options;
  const { maxBytes = maxOutput, onErrors } = options;
  const work = async (shell: StandingShell) => {
    publishCheckpoint(tool);
    const answer = await shell.run([path, ...args], input, deadlineMs, maxBytes);
    publishCheckpoint(tool);
    // A tool that only observes may run again, in another process.
    if (answer === null && outputCache !== undefined) return null;
    const limits = { deadlineMs, maxOutput: maxBytes };
    const fail = (ending: Partial<ProcessResult>, stderr = '') =>
      new CommandFailed(
        formatCommand(tool, args),
        ending.exitCode ?? null,
        describeFailure({ timedOut: false, isMaxBuffer: false, ...ending }, stderr, limits),
      );
    if (answer === null) throw fail({ signal: 'the shell that ran it was killed' });
    const { exitCode, stdout, stderr } = answer;
    if (exitCode === null) throw fail({ timedOut: true });
    if (exitCode !== 0 && !allowExitCodes.includes(exitCode)) {
      const signal = signalOf(exitCode);
      if (signal === 'SIGXFSZ') throw fail({ isMaxBuffer: true });
      throw fail(signal ? { signal } : { exitCode }, summarizeStderr(readAnonymousFile(stderr, maxStderr), input));
    }
    onErrors?.(readAnonymousFile(stderr, maxAnswers));
    return readOutput(stdout, outputCache ?? new OutputCache(), { tool, args, maxBytes });
  };
  return shells.use([path, ...args], work, options.maxBytes !== undefined);
}

/** The signal that ended a tool. A shell reports it as exit code 128 plus its number. */
function signalOf(exitCode: number): string | undefined {
  return Object.entries(constants.signals).find(([, number]) => exitCode === 128 + number)?.[0];
}

/** Reads a tool's output file. @throws CommandFailed if too long @throws DiskFailed if truncated */
export async function readOutput(
  file: AnonymousFile,
  known: OutputCache,
  { tool, args, maxBytes }: { readonly tool: Tool; readonly args: readonly string[]; readonly maxBytes: number },
): Promise<string> {
  checkUncut(file);
  const { size } = fstatSync(file.fd);
  if (size <= maxBytes) return known.read(file);
  const ending = { timedOut: false, isMaxBuffer: true };
  const limits = { deadlineMs: 0, maxOutput: maxBytes };
  throw new CommandFailed(formatCommand(tool, args), null, describeFailure(ending, '', limits));
}
