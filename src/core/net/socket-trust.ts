/** A folder in the path of a Unix socket. */
export interface SocketFolder {
  readonly path: string;
  /** The uid of its owner. */
  readonly user: number;
  /** The bits of its mode, including the sticky bit. */
  readonly mode: number;
}

/** A folder in which another user could replace a Unix socket, or a folder above it. */
export interface OpenFolder {
  readonly folder: SocketFolder;
  /** `owner`: the folder belongs to another user. `mode`: others can write in it. */
  readonly why: 'owner' | 'mode';
}

const writableByOthers = 0o022;
const sticky = 0o1000;

/**
 * Finds a folder, from the root to that of the socket, in which an untrusted user could replace the
 * socket, or null. In a folder with the sticky bit, such as /tmp, only root, the folder's owner and
 * an entry's owner can replace that entry.
 *
 * @param isTrusted true if the user may replace the socket, such as its owner
 */
export function findOpenFolder(
  folders: readonly SocketFolder[],
  isTrusted: (user: number) => boolean,
): OpenFolder | null {
  for (const folder of folders) {
    if (!isTrusted(folder.user)) return { folder, why: 'owner' };
    if ((folder.mode & writableByOthers) !== 0 && (folder.mode & sticky) === 0) return { folder, why: 'mode' };
  }
  return null;
}
