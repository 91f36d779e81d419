import { Secret } from '../../core/crypto/secret.ts';
import { CommandFailed, InvalidValue, printable, UnreadableOutput } from '../../core/errors/index.ts';
import type { Tool } from './find-tool.ts';

/** The end of a process, as execa reports it. */
export interface ProcessResult {
  readonly timedOut: boolean;
  readonly isMaxBuffer: boolean;
  readonly exitCode?: number | undefined;
  readonly signal?: string | undefined;
  readonly code?: string | undefined;
}

export interface RunLimits {
  readonly deadlineMs: number;
  readonly maxOutput: number;
}

/** Formats a command for messages, without most of its arguments. */
export function formatCommand(tool: string, args: readonly string[]): string {
  return [tool, ...args.slice(0, 3), ...(args.length > 3 ? ['...'] : [])].join(' ');
}

/** Why a tool failed, in one line: the exceeded limit, or else its error output `stderr`. */
export function describeFailure(result: ProcessResult, stderr: string, limits: RunLimits): string {
  const { timedOut, isMaxBuffer, exitCode, signal, code } = result;
  if (timedOut) return `timed out after ${limits.deadlineMs} ms`;
  if (isMaxBuffer) return `${tooLong} ${limits.maxOutput / 1024 / 1024} MiB`;
  if (stderr !== '') return stderr;
  return exitCode === undefined ? (signal ?? code ?? 'it could not be started') : '';
}

const tooLong = 'it printed more than';

/** True if a tool exceeded the output limit. */
export function isTooLong(error: unknown): boolean {
  return error instanceof CommandFailed && error.facts.exitCode === null && stderrOf(error).startsWith(tooLong);
}

/** The error output in one line, without decoration, and without words of a Secret in the input. */
export function summarizeStderr(stderr: string, input: string | Secret | undefined): string {
  const lines = redact(stderr, input)
    .split('\n')
    .map((line) => printable(line.trim()));
  // Drops nft's carets, and wireguard-go's banner, which is in a box.
  const messages = lines.filter((line) => /[\p{L}\p{N}]/u.test(line) && !line.startsWith('│'));
  return messages.join('; ').slice(0, 2000);
}

/** `wg` quotes unparsable input, such as part of a key. Words below 20 characters are no keys. */
function redact(text: string, input: string | Secret | undefined): string {
  if (!(input instanceof Secret)) return text;
  const words = input.reveal().match(/[^\s,]{20,}/g) ?? [];
  const whole = words.reduce((rest, word) => rest.replaceAll(word, '[secret]'), text);
  return whole.replaceAll(/[^\s,`'"]{4,}/g, (part) =>
    words.some((word) => word.startsWith(part)) ? '[secret]' : part,
  );
}

/** Parses the output of a tool. @throws UnreadableOutput if `parse` throws InvalidValue */
export function parseOutput<T>(tool: Tool, text: string, parse: (text: string) => T): T {
  try {
    return parse(text);
  } catch (error) {
    throw error instanceof InvalidValue ? new UnreadableOutput(tool, error.message) : error;
  }
}

/** The stderr of a failed tool; empty for other errors. */
export function stderrOf(error: unknown): string {
  return error instanceof CommandFailed ? String(error.facts.stderr) : '';
}
