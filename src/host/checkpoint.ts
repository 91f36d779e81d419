import { channel } from 'node:diagnostics_channel';
import type { Tool } from './find-tool.ts';

const checkpoints = channel('cpn:checkpoint');

/** Tells tests where a crash could come: before a tool is started, and after it ended. src/store/disk.ts has the same channel. */
export function announce(tool: Tool): void {
  if (checkpoints.hasSubscribers) checkpoints.publish({ point: 'spawn', what: tool });
}
