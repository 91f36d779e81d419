import { CommandFailed, printable } from '../core/errors.ts';
import { Secret } from '../core/secret.ts';
import { findTool, type Tool, toolFolders } from './find-tool.ts';
import { openNameless, readNameless } from './nameless-file.ts';

export interface RunOptions {
  /** What the tool reads on stdin. A Secret's words are struck out of what the tool says about it. */
  readonly input?: string | Secret;
  /** 30,000 unless told. */
  readonly deadlineMs?: number;
  /** Exit codes that are no failure, beside 0. */
  readonly allowExitCodes?: readonly number[];
  /** The tool leaves a process behind that may keep open what it inherits: it gets no pipe, and nothing is returned. */
  readonly daemon?: boolean;
}

/** Runs a tool to its end and returns what it printed on stdout; throws MissingTool or CommandFailed. */
export type Run = (tool: Tool, args: readonly string[], options?: RunOptions) => Promise<string>;

const mostOutput = 64 * 1024 * 1024;
/** Of what a daemon says before it goes into the background. */
const mostBanner = 64 * 1024;
/** From SIGTERM to SIGKILL, for a tool past its deadline. */
const graceMs = 1000;

/** Runs tools of the operating system. Nothing else in the program starts a process. */
export const run: Run = runFrom(toolFolders);

/** A Run that finds its tools in `folders`. */
export function runFrom(folders: readonly string[]): Run {
  return async (tool, args, options = {}) => {
    const path = await findTool(tool, folders);
    const { input, deadlineMs = 30_000, allowExitCodes = [], daemon = false } = options;
    const stdin = input === undefined ? null : await openNameless(input instanceof Secret ? input.reveal() : input);
    const output = daemon ? await openNameless() : null;
    let overdue: NodeJS.Timeout | undefined;
    try {
      const { execa } = await import('execa');
      const child = execa(path, args, {
        // Execa's types allow only the descriptors 0 to 2 here; Node, which gets them as they are, takes any.
        stdin: (stdin?.fd as 0 | undefined) ?? 'ignore',
        stdout: (output?.fd as 1 | undefined) ?? 'pipe',
        stderr: (output?.fd as 2 | undefined) ?? 'pipe',
        env: { PATH: toolFolders.join(':'), LC_ALL: 'C' },
        extendEnv: false,
        cwd: '/',
        // A session of its own: Ctrl-C in our terminal must neither cut a step short nor end a tunnel in user space.
        detached: true,
        timeout: deadlineMs,
        forceKillAfterDelay: graceMs,
        maxBuffer: mostOutput,
        stripFinalNewline: false,
        reject: false,
      });
      // A killed tool's own children may hold our pipes, and execa would wait for these.
      overdue = setTimeout(() => {
        child.stdout?.destroy();
        child.stderr?.destroy();
      }, deadlineMs + graceMs);
      const ending = await child;
      const ended = !ending.timedOut && !ending.isMaxBuffer;
      if (!ending.failed || (ended && allowExitCodes.includes(ending.exitCode ?? -1))) return ending.stdout ?? '';
      const said = output ? await readNameless(output, mostBanner) : (ending.stderr ?? '');
      const exitCode = ended ? (ending.exitCode ?? null) : null;
      // Execa's own error holds all of stdout, where `wg show` prints the private key: it is no cause of ours.
      throw new CommandFailed(
        nameCommand(tool, args),
        exitCode,
        explain(ending, tidy(strike(said, input)), deadlineMs),
      );
    } finally {
      clearTimeout(overdue);
      await stdin?.close();
      await output?.close();
    }
  };
}

/** What a tool wrote to stderr before it failed; empty for any other error. */
export function saidBy(error: unknown): string {
  return error instanceof CommandFailed ? String(error.facts.stderr) : '';
}

/** What execa tells of a process that failed. */
interface Ending {
  readonly timedOut: boolean;
  readonly isMaxBuffer: boolean;
  readonly exitCode?: number | undefined;
  readonly signal?: string | undefined;
  readonly code?: string | undefined;
}

function nameCommand(tool: Tool, args: readonly string[]): string {
  return [tool, ...args.slice(0, 3), ...(args.length > 3 ? ['...'] : [])].join(' ');
}

function explain({ timedOut, isMaxBuffer, exitCode, signal, code }: Ending, said: string, deadlineMs: number): string {
  if (timedOut) return `no end within ${deadlineMs} ms`;
  if (isMaxBuffer) return `it printed more than ${mostOutput / 1024 / 1024} MiB`;
  if (said !== '') return said;
  return exitCode === undefined ? (signal ?? code ?? 'it could not be started') : '';
}

/** `wg` quotes what it cannot parse. Shorter words than these are no keys. */
function strike(said: string, input: RunOptions['input']): string {
  if (!(input instanceof Secret)) return said;
  const words = input.reveal().match(/[^\s,]{20,}/g) ?? [];
  return words.reduce((text, word) => text.replaceAll(word, '[secret]'), said);
}

/** One line without what is not words: nft's carets, and wireguard-go's banner, which is in a box. */
function tidy(said: string): string {
  const lines = said.split('\n').map((line) => printable(line.trim()));
  const telling = lines.filter((line) => /[\p{L}\p{N}]/u.test(line) && !line.startsWith('│'));
  return telling.join('; ').slice(0, 2000);
}
