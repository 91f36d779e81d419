import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { linuxInspector, parseUdpPorts } from '../../../src/host/linux/linux-inspector.ts';

const inspector = linuxInspector();

async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'cpn-inspector-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

it('finds tools with their versions', async () => {
  const tools = new Map((await inspector.tools()).map((each) => [each.tool, each]));
  expect(tools.get('wg')).toMatchObject({ path: '/usr/bin/wg', version: expect.stringContaining('wireguard-tools v') });
  expect(tools.get('ip')?.version).toContain('iproute2');
  expect(tools.get('nft')?.version).toContain('nftables');
});

it('finds the open UDP ports', async () => {
  const socket = createSocket('udp6');
  onTestFinished(() => void socket.close());
  await new Promise<void>((done) => socket.bind(0, '::1', done));
  expect(await inspector.udpPorts()).toContain(socket.address().port);
  const line = '  131: 00000000:CA6C 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 12 2';
  expect(parseUdpPorts(`  sl  local_address rem_address\n${line}\n`)).toEqual(new Set([51820]));
});

it('distinguishes files, folders, links and missing paths', async () => {
  const folder = await makeFolder();
  await writeFile(join(folder, 'file'), '');
  await chmod(join(folder, 'file'), 0o640);
  await symlink('file', join(folder, 'link'));
  const uid = process.geteuid?.();
  expect(await inspector.file(folder)).toEqual({ kind: 'folder', mode: 0o700, uid });
  expect(await inspector.file(join(folder, 'file'))).toEqual({ kind: 'file', mode: 0o640, uid });
  expect(await inspector.file(join(folder, 'link'))).toMatchObject({ kind: 'other' });
  expect(await inspector.file(join(folder, 'none'))).toBeNull();
});

it('measures the space for a folder that does not exist yet', async () => {
  const folder = await makeFolder();
  const { path, bytes } = await inspector.space(join(folder, 'to', 'be', 'made'));
  expect(path).toBe(folder);
  expect(bytes).toBeGreaterThan(0);
});

it('detects whether a daemon runs, or only its pid is left', async () => {
  const file = join(await makeFolder(), 'daemon.pid');
  expect(await inspector.holder(file)).toBeNull();
  const daemon = spawn(process.execPath, ['-e', 'process.stdin.resume()', '/usr/bin/cpn.js', 'run']);
  onTestFinished(() => void daemon.kill());
  await once(daemon, 'spawn');
  await writeFile(file, `${daemon.pid}\n`);
  expect(await inspector.holder(file)).toEqual({ pid: daemon.pid, alive: true });
  // The number of another process.
  await writeFile(file, `${process.pid}\n`);
  expect(await inspector.holder(file)).toEqual({ pid: process.pid, alive: false });
  await writeFile(file, 'x; rm -rf /\n');
  expect(await inspector.holder(file)).toBeNull();
});
