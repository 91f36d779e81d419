import { setTimeout as sleep } from 'node:timers/promises';
import { Secret } from '../../core/crypto/secret.ts';
import { CommandFailed } from '../../core/errors/index.ts';
import { type AnonymousFile, openAnonymousFile, readAnonymousFile } from './anonymous-file.ts';
import { describeFailure, formatCommand, summarizeStderr } from './command-error.ts';
import { findTool, type Tool, toolFolders } from './find-tool.ts';
import { readOutput, runInShell } from './run-in-shell.ts';
import {
  defaultDeadlineMs,
  maxAnswers,
  maxOutput,
  maxStderr,
  publishCheckpoint,
  type ToolOptions,
} from './run-options.ts';
import { type Shell, ShellPool, splitLines } from './shell-pool.ts';

/** Runs a tool to its end and returns its stdout. @throws MissingTool @throws CommandFailed */
export type Run = (tool: Tool, args: readonly string[], options?: ToolOptions) => Promise<string>;

/** A tool that runs until it is closed. */
export interface Child {
  /** Undefined if the tool could not be started. */
  readonly pid: number | undefined;
  /** Resolves after the tool ended and all its lines were delivered. Never rejects. */
  readonly ended: Promise<void>;
  /** Ends the tool, with SIGKILL if it ignores SIGTERM. Delivers no line after this call. */
  close(): Promise<void>;
}

/**
 * Starts a tool and delivers each line of its stdout and stderr, or null for a line of more than 64
 * KiB. The tool ends with this process, even if this process is killed. @throws MissingTool
 */
export type Start = (tool: Tool, args: readonly string[], onLine: (line: string | null) => void) => Promise<Child>;

/** Bytes. */
const maxLine = 64 * 1024;
/** Milliseconds from SIGTERM to SIGKILL, for a tool past its deadline. */
const graceMs = 1000;

const spawnOptions = {
  env: { PATH: toolFolders.join(':'), LC_ALL: 'C' },
  extendEnv: false,
  cwd: '/',
  // A separate session: Ctrl-C must not interrupt a step, a userspace tunnel or a watch.
  detached: true,
  forceKillAfterDelay: graceMs,
  reject: false,
} as const;

/** Runs tools of the operating system. Only this file spawns processes. */
export const run: Run = runFrom(toolFolders);
export const start: Start = startFrom(toolFolders);

/**
 * Returns a Run that finds its tools in `folders`.
 *
 * @param environment additional variables, without secrets: other processes of this user can read
 *   them
 */
export function runFrom(folders: readonly string[], environment: Readonly<Record<string, string>> = {}): Run {
  const shells = new ShellPool(startShell);
  return async (tool, args, options = {}) => {
    const path = await findTool(tool, folders);
    const answer = await runInShell(shells, path, tool, args, options);
    if (answer !== null) return answer;
    const { input, deadlineMs = defaultDeadlineMs, allowExitCodes = [], daemon = false, outputCache } = options;
    const { maxBytes = maxOutput, onErrors } = options;
    const files: AnonymousFile[] = [];
    const openFile = (text?: string) => {
      const file = openAnonymousFile(text);
      files.push(file);
      return file;
    };
    let overdue: NodeJS.Timeout | undefined;
    try {
      const stdin = input === undefined ? null : openFile(input instanceof Secret ? input.reveal() : input);
      const output = daemon || outputCache ? openFile() : null;
      const errors = outputCache ? openFile() : output;
      const { execa } = await import('execa');
      publishCheckpoint(tool);
      const child = execa(path, args, {
        ...spawnOptions,
        env: { ...environment, ...spawnOptions.env },
        // Execa's types allow only the descriptors 0 to 2 here. Node, which receives them
        // unchanged, accepts any.
        stdin: (stdin?.fd as 0 | undefined) ?? 'ignore',
        stdout: (output?.fd as 1 | undefined) ?? 'pipe',
        stderr: (errors?.fd as 2 | undefined) ?? 'pipe',
        timeout: deadlineMs,
        maxBuffer: maxBytes,
        stripFinalNewline: false,
      });
      // Children of a killed tool may hold our pipes, and execa would wait for them.
      overdue = setTimeout(() => {
        child.stdout?.destroy();
        child.stderr?.destroy();
      }, deadlineMs + graceMs);
      const result = await child;
      publishCheckpoint(tool);
      const ended = !result.timedOut && !result.isMaxBuffer;
      if (!result.failed || (ended && allowExitCodes.includes(result.exitCode ?? -1))) {
        onErrors?.(errors ? readAnonymousFile(errors, maxAnswers) : (result.stderr ?? ''));
        if (output === null || outputCache === undefined) return result.stdout ?? '';
        return await readOutput(output, outputCache, { tool, args, maxBytes });
      }
      const stderr = errors ? readAnonymousFile(errors, maxStderr) : (result.stderr ?? '');
      // Drops execa's error: it contains all of stdout, in which `wg show` prints the private key.
      throw new CommandFailed(
        formatCommand(tool, args),
        ended ? (result.exitCode ?? null) : null,
        describeFailure(result, summarizeStderr(stderr, input), { deadlineMs, maxOutput: maxBytes }),
      );
    } finally {
      clearTimeout(overdue);
      for (const file of files) file.close();
    }
  };
}

/**
 * Runs a program of the user, such as an editor, on their terminal to its end, with their
 * environment. @throws CommandFailed if it cannot be started or fails
 */
export async function runOnTerminal(program: string, args: readonly string[]): Promise<void> {
  const { execa } = await import('execa');
  // Ctrl-C goes to the program too, which has its own use for it.
  const ignore = () => {};
  process.on('SIGINT', ignore);
  try {
    const result = await execa(program, args, { stdio: 'inherit', reject: false });
    if (!result.failed) return;
    const limits = { deadlineMs: 0, maxOutput: 0 };
    throw new CommandFailed(formatCommand(program, args), result.exitCode ?? null, describeFailure(result, '', limits));
  } finally {
    process.off('SIGINT', ignore);
  }
}

/** How long a program that opens a page may take to fail. Some last as long as the browser. */
const openingMs = 2_000;

/** Opens a page in the user's browser, which outlives this process. False if no program could. */
export async function openPage({ protocol, href }: URL): Promise<boolean> {
  if (protocol !== 'https:' && protocol !== 'http:') return false;
  const { execa } = await import('execa');
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open';
  const child = execa(program, [href], { stdio: 'ignore', detached: true, cleanup: false, reject: false });
  child.nodeChildProcess.unref();
  const isLate = new AbortController();
  const late = sleep(openingMs, true, { signal: isLate.signal }).catch(() => true);
  const isOpen = await Promise.race([child.then(({ failed }) => !failed), late]);
  isLate.abort();
  return isOpen;
}

/** Starts a shell that ends with this process, because its input ends then. */
async function startShell(script: string, files: readonly AnonymousFile[]): Promise<Shell> {
  const { execa } = await import('execa');
  const child = execa(await findTool('sh'), ['-c', script], {
    ...spawnOptions,
    stdio: ['pipe', 'pipe', 'ignore', ...files.map(({ fd }) => fd as 0)],
    buffer: false,
  });
  let isRunning = true;
  const ended = child.then(() => {
    isRunning = false;
  });
  // A write to an ended shell fails. `ended` reports it.
  child.stdin.on('error', () => {});
  return {
    write: (text) => child.stdin.write(text),
    onData: (listen) => child.stdout.setEncoding('utf8').on('data', listen),
    ended,
    kill: () => {
      if (!isRunning || child.pid === undefined) return;
      try {
        // The whole process group, which is the session of the shell.
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // The shell has just ended.
      }
    },
  };
}

/**
 * Becomes the tool, and leaves a background shell that waits for the end of its input. That input
 * ends with this process; then the shell kills both. Group 0 is its own (kill(2)), so no other
 * process can be hit. PR_SET_PDEATHSIG would need setpriv(1), which not every Linux has.
 */
const endWithParentScript = `unset PWD
exec 3<&0
{ read -r _; kill -KILL 0; } <&3 3<&- >/dev/null 2>&1 &
exec "$@" </dev/null 3<&-`;

export function startFrom(folders: readonly string[]): Start {
  return async (tool, args, onLine) => {
    const path = await findTool(tool, folders);
    const shell = await findTool('sh');
    const { execa } = await import('execa');
    publishCheckpoint(tool);
    const child = execa(shell, ['-c', endWithParentScript, 'sh', path, ...args], {
      ...spawnOptions,
      stdin: 'pipe',
      buffer: false,
    });
    publishCheckpoint(tool);
    const streams = [child.stdout, child.stderr];
    for (const stream of streams) stream.setEncoding('utf8').on('data', splitLines(maxLine, onLine));
    // Execa does not end detached processes.
    const kill = () => child.kill();
    process.once('exit', kill);
    const ended = child.then(() => void process.off('exit', kill));
    const close = () => {
      for (const stream of streams) stream.destroy();
      kill();
      return ended;
    };
    return { pid: child.pid, ended, close };
  };
}
