import { printable } from '../core/errors.ts';
import { Secret } from '../core/secret.ts';

/** What execa tells of a process that failed. */
export interface Ending {
  readonly timedOut: boolean;
  readonly isMaxBuffer: boolean;
  readonly exitCode?: number | undefined;
  readonly signal?: string | undefined;
  readonly code?: string | undefined;
}

/** What a tool was given. */
export interface Limits {
  readonly deadlineMs: number;
  /** In bytes. */
  readonly mostOutput: number;
}

/** A command as messages name it: without most of its arguments. */
export function nameCommand(tool: string, args: readonly string[]): string {
  return [tool, ...args.slice(0, 3), ...(args.length > 3 ? ['...'] : [])].join(' ');
}

/** Why a tool failed, in one line: what it wrote, which is `said`, unless it went past a limit. */
export function explain(ending: Ending, said: string, limits: Limits): string {
  const { timedOut, isMaxBuffer, exitCode, signal, code } = ending;
  if (timedOut) return `no end within ${limits.deadlineMs} ms`;
  if (isMaxBuffer) return `it printed more than ${limits.mostOutput / 1024 / 1024} MiB`;
  if (said !== '') return said;
  return exitCode === undefined ? (signal ?? code ?? 'it could not be started') : '';
}

/** What a tool said, in one line without what is not words, and without the words of a Secret that it read. */
export function tidy(said: string, input: string | Secret | undefined): string {
  const lines = strike(said, input)
    .split('\n')
    .map((line) => printable(line.trim()));
  // Nft's carets, and wireguard-go's banner, which is in a box.
  const telling = lines.filter((line) => /[\p{L}\p{N}]/u.test(line) && !line.startsWith('│'));
  return telling.join('; ').slice(0, 2000);
}

/** `wg` quotes what it cannot parse. Shorter words than these are no keys. */
function strike(said: string, input: string | Secret | undefined): string {
  if (!(input instanceof Secret)) return said;
  const words = input.reveal().match(/[^\s,]{20,}/g) ?? [];
  return words.reduce((text, word) => text.replaceAll(word, '[secret]'), said);
}
