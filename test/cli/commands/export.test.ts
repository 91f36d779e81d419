import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { runProgram } from '../../../src/cli/program.ts';

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-export-'));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

/** Runs the command on a host without networks and without a login. */
async function exportWith(...flags: string[]) {
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const environment = {
    CPN_STATE_DIR: folder,
    CPN_CONFIG_DIR: folder,
    CPN_RUNTIME_DIR: folder,
    XDG_CONFIG_HOME: folder,
  };
  try {
    const exitCode = await runProgram(['export', ...flags], environment);
    return { exitCode, said: write.mock.calls.map(([text]) => String(text)).join('') };
  } finally {
    write.mockRestore();
  }
}

describe('cpn export', () => {
  it.each([
    [['--format', 'ovpn'], '--format "ovpn" must be one of wg-quick, networkmanager, networkd, openwrt'],
    [['--qr', '--format', 'openwrt'], '--qr is for --format wg-quick only'],
    [['--qr', '--output', 'FOLDER/code'], 'give one of them'],
    [['--format', 'networkd'], 'systemd-networkd needs two files; name the first with --output'],
    [['--format', 'networkd', '--output', 'FOLDER/wg0'], 'does not end in .netdev'],
    [['--output', 'FOLDER/gone/wg0.conf'], 'cannot be created (ENOENT)'],
    [['--output', 'FOLDER/wg0.conf'], 'no network is joined'],
    [['--format', 'networkd', '--output', 'FOLDER/wg0.netdev'], 'no network is joined'],
    [['--network-secret-file', 'FOLDER/secret'], '--network-secret-file is for --new-peer NAME'],
    [['--no-accept-routes'], '--accept-routes is for --new-peer NAME'],
    [['--new-peer', 'phone', '--qr'], 'name the network for the new peer'],
    [['office', '--new-peer', 'phone', '--qr'], 'not logged in'],
    [['office', '--new-peer', 'phone', '--qr', '--interface', '../x'], 'is not an interface name'],
  ])('%j is answered with what to do, and leaves no file', async (flags, line) => {
    const { exitCode, said } = await exportWith(...flags.map((flag) => flag.replace('FOLDER', folder)));
    expect([exitCode, said]).toEqual([2, expect.stringContaining(line)]);
    expect(await readdir(folder)).toEqual([]);
  });
});
