import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { connectSocket } from '../../../src/api/http/socket-check.ts';
import { eventually } from '../../lab/eventually.ts';
import { memory } from '../../lab/memory.ts';

/** A server at a path, and what clients sent to it. */
async function listenAt(path: string) {
  const received: Buffer[] = [];
  const counts = { connections: 0, ended: 0 };
  const server = createServer((socket) => {
    counts.connections += 1;
    socket
      .on('data', (bytes) => received.push(bytes))
      .on('close', () => {
        counts.ended += 1;
      });
  }).listen(path);
  onTestFinished(() => void server.close());
  await eventually('it listens', () => server.listening);
  return { received, counts };
}

test('a socket that is replaced while the connection is made gets nothing', async () => {
  const folder = mkdtempSync(join(memory, 'cpn-socket-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [path, other] = [join(folder, 'control-plane'), join(folder, 'other')];
  const servers = [await listenAt(path), await listenAt(other)];
  const users: number[] = [];
  const connect = connectSocket(path, { expected: null }, {}, (user) => void users.push(user));
  const options = { hostname: 'localhost', protocol: 'http:', port: '80' };
  const failed = new Promise((resolve, reject) => {
    connect(options, (error, socket) => {
      socket?.destroy();
      if (error === null) reject(new Error('it is connected'));
      else resolve(error);
    });
  });
  // The path was judged by now, and the reply of the system comes later.
  renameSync(other, path);
  expect(await failed).toMatchObject({ message: expect.stringContaining('was replaced while the connection') });
  await eventually('the connection has ended', () => servers.some(({ counts }) => counts.ended === 1));
  expect([servers.flatMap(({ received }) => received), users]).toEqual([[], []]);
});
