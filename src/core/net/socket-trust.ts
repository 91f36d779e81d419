/** A folder on the way to a Unix socket. */
export interface SocketFolder {
  readonly path: string;
  /** The uid of its owner. */
  readonly user: number;
  /** The bits of its mode, the sticky bit included. */
  readonly mode: number;
}

/** A folder in which another user could replace a Unix socket, or a folder that leads to it. */
export interface OpenFolder {
  readonly folder: SocketFolder;
  /** `owner`: it belongs to another user. `mode`: others may write in it. */
  readonly why: 'owner' | 'mode';
}

const writableByOthers = 0o022;
const sticky = 0o1000;

/**
 * Finds a folder in which a user who is not trusted could replace a Unix socket; null where there is none. In a folder with the sticky
 * bit, as /tmp has it, only root and the owners of the folder and of an entry replace that entry.
 *
 * @param folders all from the root to that of the socket
 * @param isTrusted whether a user may replace the socket; true of the owner of the socket
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
