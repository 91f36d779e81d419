import type { FileHandle } from 'node:fs/promises';
import { platform } from 'node:process';
import { CommandFailed } from '../core/errors.ts';
import { Secret } from '../core/secret.ts';
import { announce } from './checkpoint.ts';
import { explain, nameCommand, tidy } from './explain.ts';
import type { Tool } from './find-tool.ts';
import type { KnownOutput } from './known-output.ts';
import { mostBanner, mostOutput, usualDeadlineMs } from './limits.ts';
import { readNameless } from './nameless-file.ts';
import type { RunOptions } from './run.ts';
import type { StandingShells } from './standing-shells.ts';

/** Has a shell that stands by run a tool; null where none does. */
export async function runStanding(
  shells: StandingShells,
  path: string,
  tool: Tool,
  args: readonly string[],
  { again, input = '', deadlineMs = usualDeadlineMs }: RunOptions,
): Promise<string | null> {
  if (again === undefined || platform !== 'linux' || input instanceof Secret) return null;
  announce(tool);
  return shells.ask([path, ...args], input, deadlineMs, async ({ exitCode, stdout, stderr }) => {
    announce(tool);
    if (exitCode === 0) return readOutput(stdout, again, tool, args);
    const said = tidy(await readNameless(stderr, mostBanner), undefined);
    const ending = { timedOut: exitCode === null, isMaxBuffer: false, exitCode: exitCode ?? undefined };
    throw new CommandFailed(nameCommand(tool, args), exitCode, explain(ending, said, { deadlineMs, mostOutput }));
  });
}

/** What a tool printed into a file. @throws CommandFailed when that is too much */
export async function readOutput(
  file: FileHandle,
  known: KnownOutput,
  tool: Tool,
  args: readonly string[],
): Promise<string> {
  const { size } = await file.stat();
  if (size <= mostOutput) return known.read(file);
  const ending = { timedOut: false, isMaxBuffer: true };
  throw new CommandFailed(nameCommand(tool, args), null, explain(ending, '', { deadlineMs: 0, mostOutput }));
}
