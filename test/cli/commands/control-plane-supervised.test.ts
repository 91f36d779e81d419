import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { eventually } from '../../lab/eventually.ts';
import { makeFolder, startServing } from './served-process.ts';

test('a service manager receives that the control plane is ready, and where, alive, and stopping', async () => {
  const folder = makeFolder();
  const socket = join(folder, 'notify');
  // Listens, and hands the socket over to cat with the first message.
  const reader = spawn('systemd-socket-activate', [
    '--datagram',
    `--listen=${socket}`,
    '--inetd',
    'sh',
    '-c',
    'cat >&2',
  ]);
  onTestFinished(() => void reader.kill('SIGKILL'));
  let received = '';
  reader.stderr.setEncoding('utf8').on('data', (text) => {
    received += text;
  });
  await eventually('the socket', () => existsSync(socket));
  vi.stubEnv('NOTIFY_SOCKET', socket);
  vi.stubEnv('WATCHDOG_USEC', '2000000');
  onTestFinished(() => void vi.unstubAllEnvs());
  const { url, child, ended } = await startServing(folder);
  await eventually('READY', () => received.includes(`READY=1\nSTATUS=listening on ${url}`));
  await eventually('two watchdog messages', () => received.split('WATCHDOG=1').length > 2);
  child.kill('SIGTERM');
  expect(await ended()).toBe(0);
  await eventually('STOPPING', () => received.includes('STOPPING=1'));
});
