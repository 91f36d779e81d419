import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { removeStaleSocket } from '../../../src/control-plane/http/unix-socket.ts';

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
