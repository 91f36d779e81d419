import { channel } from 'node:diagnostics_channel';
import { type CpnError, DiskFailed, expectCpnError } from '../../core/errors/index.ts';

/** An action on the disk. Each action except a read is a checkpoint, before and after. */
export type DiskAction = 'read' | 'write' | 'fsync' | 'link' | 'rename' | 'unlink' | 'mkdir' | 'rmdir';

/** Points where tests simulate a crash. src/host/process/run-options.ts shares the channel. */
const checkpoints = channel('cpn:checkpoint');

/**
 * Performs one action on the disk, and publishes it before and after, unless it is a read.
 *
 * @param path the path for messages; for a temporary file, the path of the file that it replaces
 * @throws DiskFailed for each disk error, except the codes in `allow`, which the caller handles
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

/** The code of an operating system error. Null for any other error. */
export function codeOf(error: unknown): string | null {
  const { code, errno } = error as Partial<NodeJS.ErrnoException>;
  return typeof code === 'string' && typeof errno === 'number' ? code : null;
}

/** Returns `instead` for an error with one of these codes. Throws any other error. */
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

/** Runs `work`, and then `last` in any case. If both fail, throws the error of `work`. */
export async function finallyDo<T>(work: () => Promise<T>, last: () => Promise<unknown>): Promise<T> {
  let result: T;
  try {
    result = await work();
  } catch (error) {
    await last().catch(expectedError);
    throw error;
  }
  await last();
  return result;
}

/** Returns an error of the catalogue, for the `catch` of a promise. Throws any other error. */
export function expectedError(error: unknown): CpnError {
  return expectCpnError(error);
}
