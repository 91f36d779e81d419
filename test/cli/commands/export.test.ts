import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import * as enrolling from '../../../src/app/export/enroll-device.ts';
import * as admin from '../../../src/cli/admin.ts';
import * as connectors from '../../../src/cli/api/device-connector.ts';
import { exportTunnel } from '../../../src/cli/commands/export.ts';
import { runProgram } from '../../../src/cli/program.ts';
import * as rendering from '../../../src/core/export/format.ts';
import { runCommand } from './run-command.ts';

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

describe('a new device', () => {
  afterEach(() => vi.restoreAllMocks());
  const office = { id: 1, name: 'office', private_cidr: '10.77.0.0/24', routes: [], peers: [] };
  const connector = { id: 2, name: 'edge-1' };

  /** Enrols a device as the control plane does it, and returns what was asked of it. */
  async function enrol(given: object, dialled: object | null, enrolled: () => Promise<void> = async () => {}) {
    vi.restoreAllMocks();
    const service = { listNetworks: async () => [office], readNetwork: async () => office };
    const address = { url: 'https://cp.example.net', insecureHttp: false };
    vi.spyOn(admin, 'openAdminAt').mockResolvedValue({ admin: service as never, address });
    vi.spyOn(connectors, 'findConnector').mockResolvedValue(dialled as never);
    const device = {
      ...{
        id: 7,
        name: 'phone',
        profile: null,
        range: '10.77.0.0/24',
        refused: [{ prefix: '0.0.0.0/0', reason: 'x' }],
      },
      config: { address: { address: '10.77.0.7' } },
    };
    vi.spyOn(rendering, 'renderExport').mockReturnValue([{ suffix: '.conf', text: '[Interface]\n' }]);
    const made = vi.spyOn(enrolling, 'enrollDevice').mockImplementation((async (
      ...[, , recipient]: Parameters<typeof enrolling.enrollDevice>
    ) => {
      await enrolled();
      await recipient.handOver(device as never);
    }) as never);
    const output = join(folder, 'phone.conf');
    const outcome = await runCommand(
      exportTunnel,
      { network: 'office', 'new-peer': 'phone', output, ...given },
      { tools: {} },
    );
    return { ...outcome, request: made.mock.calls[0]?.[1] };
  }

  it('accepts the routes of connectors unless a flag says otherwise, and masquerades nothing', async () => {
    const { exitCode, request, stderr } = await enrol({ 'allow-route': ['8.8.8.0/24'] }, connector);
    expect([exitCode, request?.name, request?.link]).toEqual([0, 'phone', 'wg0']);
    expect(request?.options).toMatchObject({ acceptRoutes: true, masquerade: false, allowRoutes: ['8.8.8.0/24'] });
    expect(stderr).toContain('the route to 0.0.0.0/0 is left out: x');
    expect(stderr).toContain(
      'phone is peer 7 of the network, with 10.77.0.7; it reaches the network through edge-1 alone',
    );
    await rm(join(folder, 'phone.conf'));
    const without = await enrol({ 'accept-routes': false }, null);
    expect(without.request?.options.acceptRoutes).toBe(false);
    expect(without.stderr).toContain('it does not receive later changes of the network');
    await rm(join(folder, 'phone.conf'));
  });

  it('that cannot be enrolled leaves no file', async () => {
    const { error } = await enrol({}, connector, () => Promise.reject(new Error('no')));
    expect([error?.message, await readdir(folder)]).toEqual(['no', []]);
  });
});
