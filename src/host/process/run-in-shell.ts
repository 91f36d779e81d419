import { fstatSync } from 'node:fs';
import { platform } from 'node:process';
import { CommandFailed } from '../../core/errors/index.ts';
import { type AnonymousFile, readAnonymousFile } from './anonymous-file.ts';
import { describeFailure, formatCommand, summarizeStderr } from './command-error.ts';
import type { Tool } from './find-tool.ts';
import { OutputCache } from './output-cache.ts';
import { defaultDeadlineMs, maxOutput, maxStderr, publishCheckpoint, type RunOptions } from './run-options.ts';
import type { ShellPool } from './shell-pool.ts';

/** Runs a tool in a shell of the pool; null where there is none for it. */
export async function runInShell(
  shells: ShellPool,
  path: string,
  tool: Tool,
  args: readonly string[],
  { outputCache, isFrequent = false, input = '', deadlineMs = defaultDeadlineMs }: RunOptions,
): Promise<string | null> {
  if ((outputCache === undefined && !isFrequent) || platform !== 'linux') return null;
  publishCheckpoint(tool);
  return shells.ask([path, ...args], input, deadlineMs, async ({ exitCode, stdout, stderr }) => {
    publishCheckpoint(tool);
    if (exitCode === 0) return readOutput(stdout, outputCache ?? new OutputCache(), tool, args);
    const said = summarizeStderr(readAnonymousFile(stderr, maxStderr), input);
    const ending = { timedOut: exitCode === null, isMaxBuffer: false, exitCode: exitCode ?? undefined };
    throw new CommandFailed(
      formatCommand(tool, args),
      exitCode,
      describeFailure(ending, said, { deadlineMs, maxOutput }),
    );
  });
}

/** Reads the output of a tool from its file. @throws CommandFailed when it is too long */
export async function readOutput(
  file: AnonymousFile,
  known: OutputCache,
  tool: Tool,
  args: readonly string[],
): Promise<string> {
  const { size } = fstatSync(file.fd);
  if (size <= maxOutput) return known.read(file);
  const ending = { timedOut: false, isMaxBuffer: true };
  throw new CommandFailed(formatCommand(tool, args), null, describeFailure(ending, '', { deadlineMs: 0, maxOutput }));
}
