import type { FileHandle } from 'node:fs/promises';
import { CommandFailed } from '../core/errors.ts';
import { Secret } from '../core/secret.ts';
import { announce } from './checkpoint.ts';
import { explain, nameCommand, tidy } from './explain.ts';
import { findTool, type Tool, toolFolders } from './find-tool.ts';
import type { KnownOutput } from './known-output.ts';
import { mostBanner, mostOutput, usualDeadlineMs } from './limits.ts';
import { splitLines } from './lines.ts';
import { openNameless, readNameless } from './nameless-file.ts';
import { readOutput, runStanding } from './run-standing.ts';
import { type Shell, StandingShells } from './standing-shells.ts';

export interface RunOptions {
  /** What the tool reads on stdin. A Secret's words are struck out of what the tool says about it. */
  readonly input?: string | Secret;
  /** 30,000 unless told. */
  readonly deadlineMs?: number;
  /** Variables that it gets beside those that every tool gets. No secret: other processes of this user can read them. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Exit codes that are no failure, beside 0. */
  readonly allowExitCodes?: readonly number[];
  /** The tool leaves a process behind that may keep open what it inherits: it gets no pipe, and nothing is returned. */
  readonly daemon?: boolean;
  /**
   * It is asked again and again, and much is expected on stdout: that is a file, so that we are not woken for every 4 KiB, and from the
   * third time on a shell that stands by runs the tool.
   */
  readonly again?: KnownOutput;
}

/** Runs a tool to its end and returns what it printed on stdout; throws MissingTool or CommandFailed. */
export type Run = (tool: Tool, args: readonly string[], options?: RunOptions) => Promise<string>;

/** A tool that runs until it is closed. */
export interface Child {
  /** Undefined where it could not be started. */
  readonly pid: number | undefined;
  /** Settles, and never rejects, when it is gone and all its lines were handed on. */
  readonly ended: Promise<void>;
  /** Ends it, with SIGKILL where it ignores SIGTERM; no line comes after the call. */
  close(): Promise<void>;
}

/**
 * Starts a tool and hands on what it prints, on stdout and stderr alike, line by line; null stands for a line that was too
 * long to keep. Throws MissingTool. It ends with this process, also when that is killed.
 */
export type Start = (tool: Tool, args: readonly string[], onLine: (line: string | null) => void) => Promise<Child>;

/** Of a line that does not end. */
const mostLine = 64 * 1024;
/** From SIGTERM to SIGKILL, for a tool past its deadline. */
const graceMs = 1000;

/** What every tool gets. */
const common = {
  env: { PATH: toolFolders.join(':'), LC_ALL: 'C' },
  extendEnv: false,
  cwd: '/',
  // A session of its own: Ctrl-C in our terminal must neither cut a step short nor end a tunnel in user space or a watch.
  detached: true,
  forceKillAfterDelay: graceMs,
  reject: false,
} as const;

/** Runs tools of the operating system. Nothing else in the program starts a process, but for {@link start}. */
export const run: Run = runFrom(toolFolders);
export const start: Start = startFrom(toolFolders);

/** A Run that finds its tools in `folders`. */
export function runFrom(folders: readonly string[]): Run {
  const shells = new StandingShells(startShell);
  return async (tool, args, options = {}) => {
    const path = await findTool(tool, folders);
    const answer = await runStanding(shells, path, tool, args, options);
    if (answer !== null) return answer;
    const { input, deadlineMs = usualDeadlineMs, environment = {}, allowExitCodes = [] } = options;
    const { daemon = false, again = null } = options;
    const stdin = input === undefined ? null : await openNameless(input instanceof Secret ? input.reveal() : input);
    const output = daemon || again ? await openNameless() : null;
    let overdue: NodeJS.Timeout | undefined;
    try {
      const { execa } = await import('execa');
      announce(tool);
      const child = execa(path, args, {
        ...common,
        env: { ...environment, ...common.env },
        // Execa's types allow only the descriptors 0 to 2 here; Node, which gets them as they are, takes any.
        stdin: (stdin?.fd as 0 | undefined) ?? 'ignore',
        stdout: (output?.fd as 1 | undefined) ?? 'pipe',
        stderr: (daemon ? (output?.fd as 2 | undefined) : undefined) ?? 'pipe',
        timeout: deadlineMs,
        maxBuffer: mostOutput,
        stripFinalNewline: false,
      });
      // A killed tool's own children may hold our pipes, and execa would wait for these.
      overdue = setTimeout(() => {
        child.stdout?.destroy();
        child.stderr?.destroy();
      }, deadlineMs + graceMs);
      const ending = await child;
      announce(tool);
      const ended = !ending.timedOut && !ending.isMaxBuffer;
      if (!ending.failed || (ended && allowExitCodes.includes(ending.exitCode ?? -1)))
        return output && again ? await readOutput(output, again, tool, args) : (ending.stdout ?? '');
      const said = output && daemon ? await readNameless(output, mostBanner) : (ending.stderr ?? '');
      const exitCode = ended ? (ending.exitCode ?? null) : null;
      // Execa's own error holds all of stdout, where `wg show` prints the private key: it is no cause of ours.
      throw new CommandFailed(
        nameCommand(tool, args),
        exitCode,
        explain(ending, tidy(said, input), { deadlineMs, mostOutput }),
      );
    } finally {
      clearTimeout(overdue);
      await stdin?.close();
      await output?.close();
    }
  };
}

/** Ends with us: its input ends then. */
async function startShell(script: string, args: readonly string[], files: readonly FileHandle[]): Promise<Shell> {
  const { execa } = await import('execa');
  const child = execa(await findTool('sh'), ['-c', script, 'sh', ...args], {
    ...common,
    stdio: ['pipe', 'pipe', 'ignore', ...files.map(({ fd }) => fd as 0)],
    buffer: false,
  });
  let runs = true;
  const ended = child.then(() => {
    runs = false;
  });
  // One that is gone says so by its end.
  child.stdin.on('error', () => {});
  return {
    write: (text) => child.stdin.write(text),
    onData: (listen) => child.stdout.setEncoding('utf8').on('data', listen),
    ended,
    kill: () => {
      // What it runs is of its session, and so of its group; where that ended a moment ago, there is nothing to end.
      if (runs && child.pid !== undefined) tryTo(() => process.kill(-(child.pid ?? 0), 'SIGKILL'));
    },
  };
}

function tryTo(act: () => void): void {
  try {
    act();
  } catch {}
}

/**
 * Becomes the tool, and leaves a shell beside it that waits for the end of its input, which is the end of this process, and then kills
 * both: the group 0 is its own (kill(2)), and no other process can have that number meanwhile. The kernel's way, PR_SET_PDEATHSIG, takes
 * a setpriv(1) that not every Linux has.
 */
const guarded = `unset PWD
exec 3<&0
{ read -r _; kill -KILL 0; } <&3 3<&- >/dev/null 2>&1 &
exec "$@" </dev/null 3<&-`;

/** A Start that finds its tools in `folders`. */
export function startFrom(folders: readonly string[]): Start {
  return async (tool, args, onLine) => {
    const path = await findTool(tool, folders);
    const shell = await findTool('sh');
    const { execa } = await import('execa');
    announce(tool);
    const child = execa(shell, ['-c', guarded, 'sh', path, ...args], { ...common, stdin: 'pipe', buffer: false });
    announce(tool);
    const streams = [child.stdout, child.stderr];
    for (const stream of streams) stream.setEncoding('utf8').on('data', splitLines(mostLine, onLine));
    // Execa's own cleanup leaves alone what has a session of its own.
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

/** What a tool wrote to stderr before it failed; empty for any other error. */
export function saidBy(error: unknown): string {
  return error instanceof CommandFailed ? String(error.facts.stderr) : '';
}
