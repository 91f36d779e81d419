import { constants, type Stats } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

interface RenameOptions {
  /** The path of the new file before the rename, in the folder of the target. */
  readonly temporary: string;
  readonly owner: Pick<Stats, 'mode' | 'uid' | 'gid'>;
  /** False if another program changed the target: then nothing changes. */
  readonly isCurrent: () => Promise<boolean>;
}

/** Replaces a file atomically by one with this text, as one character per byte. */
export async function renameInto(
  target: string,
  text: string,
  { temporary, owner, isCurrent }: RenameOptions,
): Promise<boolean> {
  try {
    await rm(temporary, { force: true });
    await writeNew(temporary, text, owner);
    if (!(await isCurrent())) return false;
    await rename(temporary, target);
  } finally {
    await rm(temporary, { force: true }).catch(() => {});
  }
  await syncFolder(target);
  return true;
}

/** Makes the names in the folder of a file durable. */
export function syncFolder(path: string): Promise<void> {
  return withFile(dirname(path), constants.O_RDONLY, (folder) => folder.sync());
}

async function writeNew(path: string, text: string, { mode, uid, gid }: RenameOptions['owner']): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  await withFile(path, flags, async (file) => {
    await file.writeFile(text, 'latin1');
    await file.chown(uid, gid);
    await file.chmod(mode & 0o7777);
    await file.sync();
  });
}

export async function withFile(path: string, flags: number, work: (file: FileHandle) => Promise<void>): Promise<void> {
  const file = await open(path, flags, 0o600);
  try {
    await work(file);
  } finally {
    await file.close();
  }
}
