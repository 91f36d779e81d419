import { channel } from 'node:diagnostics_channel';
import type { Secret } from '../../core/crypto/secret.ts';
import type { Tool } from './find-tool.ts';
import type { OutputCache } from './output-cache.ts';

export interface ToolOptions {
  /** The stdin of the tool. The words of a Secret are redacted in its error output. */
  readonly input?: string | Secret;
  /** {@link defaultDeadlineMs} if absent. */
  readonly deadlineMs?: number;
  /** Exit codes that count as success, in addition to 0. */
  readonly allowExitCodes?: readonly number[];
  /**
   * True if the tool leaves a process behind. That process could keep inherited pipes open, so the
   * tool gets none, and its output is not returned.
   */
  readonly daemon?: boolean;
  /** For a frequent tool with much output: stdout is a file, as Node would wake for every 4 KiB. */
  readonly outputCache?: OutputCache;
  /**
   * The limit of stdout in bytes, {@link maxOutput} if absent. A tool that exceeds it is ended soon
   * after, and {@link isTooLong} is true for its error.
   */
  readonly maxBytes?: number;
  /** Receives all of stderr, up to {@link maxAnswers}, before the output is returned. */
  readonly onErrors?: (stderr: string) => void;
}

export const defaultDeadlineMs = 30_000;
/** Bytes of stdout. */
export const maxOutput = 64 * 1024 * 1024;
/** Bytes of stderr. */
export const maxStderr = 64 * 1024;
/** Bytes of stderr, if it is part of the result. */
export const maxAnswers = 8 * 1024 * 1024;

const checkpoints = channel('cpn:checkpoint');

/** Lets tests crash the process around a tool. src/store/files/disk.ts shares the channel. */
export function publishCheckpoint(tool: Tool): void {
  if (checkpoints.hasSubscribers) checkpoints.publish({ point: 'spawn', what: tool });
}
