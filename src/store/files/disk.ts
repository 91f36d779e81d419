import { channel } from 'node:diagnostics_channel';
import { DiskFailed } from '../../core/errors/index.ts';

/** An action on the disk; each but a read is a checkpoint, before and after. */
export type DiskAction = 'read' | 'write' | 'fsync' | 'link' | 'rename' | 'unlink' | 'mkdir' | 'rmdir';

/** Marks for tests where a crash could come, as src/host/process/run.ts does on the channel of the same name. */
const checkpoints = channel('cpn:checkpoint');

/**
 * Does one action on the disk, and publishes it before and after, unless it is a read.
 *
 * @param path the path for messages; a temporary file has that of the file that it is to replace
 * @throws DiskFailed for each error of the disk but those with a code in `allow`, which are for the caller
 */
export async function touch<T>(
  action: DiskAction,
  path: string,
  work: () => Promise<T>,
  allow: readonly string[] = [],
): Promise<T> {
  announce(action, path);
  try {
    return await work();
  } catch (error) {
    const code = codeOf(error);
    if (code === null || allow.includes(code)) throw error;
    throw new DiskFailed(verbs[action], path, error as NodeJS.ErrnoException);
  } finally {
    announce(action, path);
  }
}

/** The code of an error of the operating system, or null for any other. */
export function codeOf(error: unknown): string | null {
  const { code, errno } = error as Partial<NodeJS.ErrnoException>;
  return typeof code === 'string' && typeof errno === 'number' ? code : null;
}

/** `instead`, for an error with one of these codes; throws any other. */
export function ignore<T>(error: unknown, codes: readonly string[], instead: T): T {
  if (!codes.includes(codeOf(error) ?? '')) throw error;
  return instead;
}

function announce(point: DiskAction, what: string): void {
  if (point !== 'read' && checkpoints.hasSubscribers) checkpoints.publish({ point, what });
}

const verbs: Readonly<Record<DiskAction, string>> = {
  read: 'read',
  write: 'write',
  fsync: 'write',
  link: 'keep a copy of',
  rename: 'replace',
  unlink: 'remove',
  mkdir: 'make the folder',
  rmdir: 'remove the folder',
};
