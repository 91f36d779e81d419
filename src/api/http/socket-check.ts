import { lstatSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { buildConnector } from 'undici';
import { findOpenFolder, type SocketFolder } from '../../core/net/socket-trust.ts';
import { AttemptFailed } from './attempt-failed.ts';
import { describeUser, isPrivileged, type SocketConnector } from './listener-check.ts';
import type { ExpectedUser } from './target.ts';

/** The Unix socket that is at a path now. */
interface FoundSocket {
  /** Without symbolic links, so that only the owners of `folders` can redirect it. */
  readonly path: string;
  /** Differs for another socket at the same path. */
  readonly id: string;
  /** The uid of its owner. */
  readonly user: number;
  readonly folders: readonly SocketFolder[];
}

/**
 * Connects to a Unix socket. Before anything is sent, it checks that only root, this process's user
 * and the socket's owner could have put it there.
 *
 * @param settings the options of undici's connector
 * @param onUser receives the owner of the socket
 */
export function connectSocket(
  path: string,
  { expected }: ExpectedUser,
  settings: buildConnector.BuildOptions,
  onUser: (user: number) => void,
): SocketConnector {
  return (options, done) => {
    const attempt = (work: () => void) => {
      try {
        work();
      } catch (error) {
        done(error as Error, null);
      }
    };
    attempt(() => {
      const before = judgeSocket(path, expected);
      const connect = buildConnector({ ...settings, socketPath: before.path });
      connect(options, (...[error, socket]) => {
        if (!socket) return done(error as Error, null);
        attempt(() => {
          try {
            // Before this check, another user may have replaced the socket.
            if (judgeSocket(path, expected).id !== before.id) throw changed();
          } catch (problem) {
            socket.destroy();
            throw problem;
          }
          onUser(before.user);
          done(null, socket);
        });
      });
    });
  };
}

/** @throws AttemptFailed for a socket that an untrusted user made or could have replaced */
function judgeSocket(path: string, expected: number | null): FoundSocket {
  const found = findSocket(path);
  if (expected !== null && found.user !== expected && !isPrivileged(found.user)) {
    throw foreign(
      `the socket belongs to ${describeUser(found.user)}; before, it belonged to ${describeUser(expected)}`,
    );
  }
  const open = findOpenFolder(found.folders, (user) => user === found.user || user === expected || isPrivileged(user));
  if (open === null) return found;
  const { folder, why } = open;
  const mode = (folder.mode & 0o7777).toString(8).padStart(4, '0');
  throw why === 'owner'
    ? foreign(
        `${describeUser(folder.user)} can replace the socket, as the owner of ${folder.path}`,
        'let the control plane listen in a folder of root, or of its own user',
      )
    : foreign(
        `other users can replace the socket, because they can write in ${folder.path} (mode ${mode})`,
        `type: chmod go-w ${folder.path}`,
      );
}

/** @throws NodeJS.ErrnoException if the path does not exist, AttemptFailed if it is no socket */
function findSocket(path: string): FoundSocket {
  const folder = realpathSync(dirname(path));
  const real = join(folder, basename(path));
  const stats = lstatSync(real, { bigint: true });
  if (!stats.isSocket()) {
    throw new AttemptFailed(`${path} is not a socket`, { ...nothing, retry: false, remedy: 'check the path' });
  }
  const { dev, ino, ctimeNs, uid } = stats;
  return { path: real, id: `${dev} ${ino} ${ctimeNs}`, user: Number(uid), folders: foldersTo(folder) };
}

function foldersTo(folder: string): SocketFolder[] {
  const above = folder === '/' ? [] : foldersTo(dirname(folder));
  const { uid, mode } = lstatSync(folder);
  return [...above, { path: folder, user: uid, mode }];
}

const nothing = { sent: false, perhapsDone: false, heard: false };

function foreign(problem: string, remedy: string | null = null): AttemptFailed {
  return new AttemptFailed(problem, { ...nothing, retry: false, foreign: { problem, remedy } });
}

function changed(): AttemptFailed {
  const problem = 'the socket was replaced while the connection was made';
  return new AttemptFailed(problem, { ...nothing, retry: true, remedy: 'try again' });
}
