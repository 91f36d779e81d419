import { channel } from 'node:diagnostics_channel';
import type { Tool } from './find-tool.ts';

const checkpoints = channel('cpn:checkpoint');

/** Lets tests crash the process before a tool starts and after it ends. src/store/files/disk.ts has the same channel. */
export function publishCheckpoint(tool: Tool): void {
  if (checkpoints.hasSubscribers) checkpoints.publish({ point: 'spawn', what: tool });
}
