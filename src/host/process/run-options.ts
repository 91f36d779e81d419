import { channel } from 'node:diagnostics_channel';
import type { Secret } from '../../core/crypto/secret.ts';
import type { Tool } from './find-tool.ts';
import type { OutputCache } from './output-cache.ts';

export interface ToolOptions {
  /** What the tool reads on stdin. The words of a Secret are redacted in its error output. */
  readonly input?: string | Secret;
  /** {@link defaultDeadlineMs} if absent. */
  readonly deadlineMs?: number;
  /** Exit codes that are no failure, in addition to 0. */
  readonly allowExitCodes?: readonly number[];
  /** The tool leaves a process behind, which may keep inherited pipes open: it gets none, and its output is not returned. */
  readonly daemon?: boolean;
  /**
   * For a tool that observes, every few seconds and with much output: stdout is a file, so that Node is not woken for every 4 KiB.
   */
  readonly outputCache?: OutputCache;
  /** Bytes of stdout; {@link maxOutput} if absent. A tool that prints more is ended soon after, and {@link isTooLong} is true then. */
  readonly maxBytes?: number;
  /** Called with all of stderr, up to {@link maxAnswers}, before the tool's output is returned. */
  readonly onErrors?: (stderr: string) => void;
}

export const defaultDeadlineMs = 30_000;
/** Bytes of stdout. */
export const maxOutput = 64 * 1024 * 1024;
/** Bytes of stderr. */
export const maxStderr = 64 * 1024;
/** Bytes of stderr where it is part of the answer. */
export const maxAnswers = 8 * 1024 * 1024;

const checkpoints = channel('cpn:checkpoint');

/** Lets tests crash the process before a tool starts and after it ends. src/store/files/disk.ts has the same channel. */
export function publishCheckpoint(tool: Tool): void {
  if (checkpoints.hasSubscribers) checkpoints.publish({ point: 'spawn', what: tool });
}
