import { lstatSync, unlinkSync } from 'node:fs';
import type { Server } from 'node:http';
import { connect, type Socket } from 'node:net';

/**
 * Removes a Unix socket that a killed control plane of this user left behind.
 * @throws NodeJS.ErrnoException if the path is not a socket, a socket of another user, or in use
 */
export async function removeStaleSocket(path: string): Promise<void> {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (!stats.isSocket()) throw withCode('ENOTSOCK', 'it exists and is not a socket; cpn does not replace it');
  if (stats.uid !== process.geteuid?.()) {
    throw withCode('EPERM', `the socket there belongs to user ${stats.uid}; remove it if its program is gone`);
  }
  if (await isAnswered(path)) throw withCode('EADDRINUSE', 'another program listens there');
  unlinkSync(path);
}

function withCode(code: string, message: string): NodeJS.ErrnoException {
  return Object.assign(new Error(message), { code });
}

/** @throws NodeJS.ErrnoException if the answer is unknown */
async function isAnswered(path: string): Promise<boolean> {
  const socket = connect(path);
  try {
    return await new Promise<boolean>((resolve, reject) => {
      socket.once('connect', () => resolve(true));
      socket.once('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ECONNREFUSED') resolve(false);
        else reject(error);
      });
    });
  } finally {
    socket.destroy();
  }
}

/** Gives clients 127.0.0.1 for limits and audit log, and unique ports to identify connections. */
export function nameSocketClients(server: Server): void {
  let count = 0;
  server.on('connection', (socket: Socket) => {
    if (typeof server.address() !== 'string') return;
    count += 1;
    Object.defineProperty(socket, 'remoteAddress', { value: '127.0.0.1' });
    Object.defineProperty(socket, 'remotePort', { value: count });
  });
}
