import { vi } from 'vitest';
import type { Tools } from '../../../src/app/tools.ts';
import * as context from '../../../src/cli/context.ts';
import { Input } from '../../../src/cli/input/input.ts';
import type { Command } from '../../../src/cli/parse/command.ts';

/** The outcome of a command: its exit code or error, and what it printed. */
export interface CommandOutcome {
  readonly exitCode: number | null;
  readonly error: Error | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command, on this host if there are `tools`. Its caller restores the mocks. */
export async function runCommand(
  command: Command,
  given: Readonly<Record<string, unknown>>,
  {
    tools,
    environment = {},
  }: { readonly tools?: object; readonly environment?: Readonly<Record<string, string>> } = {},
): Promise<CommandOutcome> {
  const written = captureOutput();
  if (tools !== undefined) {
    const warn = (text: string) => void process.stderr.write(`warning: ${text}\n`);
    vi.spyOn(context, 'openTools').mockResolvedValue({ ...tools, warn } as Tools);
  }
  const input = new Input(given, command.flags, { XDG_CONFIG_HOME: '/nonexistent', ...environment });
  try {
    const exitCode = await command.run(input);
    return { ...written, exitCode, error: null };
  } catch (error) {
    return { ...written, exitCode: null, error: error as Error };
  } finally {
    vi.mocked(process.stdout.write).mockRestore();
    vi.mocked(process.stderr.write).mockRestore();
  }
}

/** What this process writes from now on, until the mocks of the test are restored. */
export function captureOutput(): Record<'stdout' | 'stderr', string> {
  const written = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    // A command waits for the end of a write that must not be lost.
    vi.spyOn(process[name], 'write').mockImplementation(((text: unknown, done?: unknown) => {
      written[name] += String(text);
      if (typeof done === 'function') done();
      return true;
    }) as typeof process.stdout.write);
  }
  return written;
}
