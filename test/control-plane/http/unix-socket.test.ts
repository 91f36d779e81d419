import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { chownSync, existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import net, { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { nameSocketClients, removeStaleSocket } from '../../../src/control-plane/http/unix-socket.ts';

let path: string;

beforeEach(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'cpn-socket-'));
  path = join(folder, 'api.sock');
  onTestFinished(() => rm(folder, { recursive: true }));
});

test('a path without a socket is free', async () => {
  await removeStaleSocket(path);
  expect(existsSync(path)).toBe(false);
});

test('the socket of a killed program is removed', async () => {
  const listen = 'require("net").createServer().listen(process.argv[1], () => console.log("listening"))';
  const child = spawn(process.execPath, ['-e', listen, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  await expect(removeStaleSocket(path)).rejects.toMatchObject({ code: 'EADDRINUSE' });
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(existsSync(path)).toBe(true);
  await removeStaleSocket(path);
  expect(existsSync(path)).toBe(false);
});

test('a socket at which a program answers stays, and so does a file', async () => {
  const server = createServer().listen(path);
  await once(server, 'listening');
  await expect(removeStaleSocket(path)).rejects.toMatchObject({ code: 'EADDRINUSE' });
  expect(existsSync(path)).toBe(true);
  server.close();
  await once(server, 'close');
  await writeFile(path, 'text');
  await expect(removeStaleSocket(path)).rejects.toMatchObject({ code: 'ENOTSOCK' });
  expect(existsSync(path)).toBe(true);
});

test('a socket of another user stays, and is named', async () => {
  const server = createServer().listen(path);
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  chownSync(path, 65534, 65534);
  await expect(removeStaleSocket(path)).rejects.toMatchObject({
    code: 'EPERM',
    message: expect.stringContaining('belongs to user 65534'),
  });
  expect(existsSync(path)).toBe(true);
});

test.each(['EACCES', 'EAGAIN', 'EPROTOTYPE'])(
  'a socket that cannot be tried for %s stays: a program may answer',
  async (code) => {
    const server = createServer().listen(path);
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const socket = Object.assign(new EventEmitter(), { destroy: () => {} });
    const dial = vi.spyOn(net, 'connect').mockImplementation(() => {
      setImmediate(() => socket.emit('error', Object.assign(new Error(code), { code })));
      return socket as net.Socket;
    });
    syncBuiltinESMExports();
    onTestFinished(() => {
      dial.mockRestore();
      syncBuiltinESMExports();
    });
    await expect(removeStaleSocket(path)).rejects.toMatchObject({ code });
    expect(existsSync(path)).toBe(true);
  },
);

test.each([
  ['/run/api.sock', ['127.0.0.1 1', '127.0.0.1 2']],
  [{ address: '192.0.2.1', port: 443 }, ['198.51.100.7 4711', '198.51.100.7 4711']],
])('clients of %j are %j', (address, names) => {
  const server = Object.assign(new EventEmitter(), { address: () => address });
  nameSocketClients(server as unknown as Server);
  const sockets = names.map(() => ({ remoteAddress: '198.51.100.7', remotePort: 4711 }));
  for (const socket of sockets) server.emit('connection', socket);
  expect(sockets.map(({ remoteAddress, remotePort }) => `${remoteAddress} ${remotePort}`)).toEqual(names);
});
