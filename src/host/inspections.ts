import { lstat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { FileFacts } from '../core/doctor/check-files.ts';
import type { Space, ToolFound } from '../core/doctor/check-host.ts';
import { findTool, remedies, type Tool } from './process/find-tool.ts';
import type { Run } from './process/run.ts';

/** {@link Inspector.file} */
export async function readFileFacts(path: string): Promise<FileFacts | null> {
  const stats = await lstat(path).catch(() => null);
  if (stats === null) return null;
  const kind = stats.isFile() ? 'file' : stats.isDirectory() ? 'folder' : 'other';
  return { kind, mode: stats.mode & 0o7777, uid: stats.uid };
}

/** {@link Inspector.space} */
export async function readDiskSpace(path: string): Promise<Space> {
  const found = await statfs(path).catch(() => null);
  if (found === null) {
    const above = dirname(path);
    return above === path ? { path, bytes: 0, files: null } : readDiskSpace(above);
  }
  return { path, bytes: found.bavail * found.bsize, files: found.files === 0 ? null : found.ffree };
}

/** Finds a tool. Its version is the first line of output with `flag`; null without a flag. */
export async function inspectTool(run: Run, tool: Tool, flag: string | null): Promise<ToolFound> {
  const remedy = remedies[tool];
  const path = await findTool(tool).catch(() => null);
  if (path === null || flag === null) return { tool, path, version: null, remedy };
  const output = await run(tool, [flag], { deadlineMs: 3_000 }).catch(() => '');
  return { tool, path, version: output.split('\n')[0]?.trim() || null, remedy };
}
