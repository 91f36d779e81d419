import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CommandFailed } from '../../../src/core/errors/index.ts';
import type { Run } from '../../../src/host/process/run.ts';
import { applyCommands } from '../../../src/host/wg-quick/apply-commands.ts';
import { portableHost } from '../../../src/host/wg-quick/portable-host.ts';
import { tunnelFiles } from '../../../src/host/wg-quick/tunnel-files.ts';
import { wgQuickManager } from '../../../src/host/wg-quick/tunnel-manager.ts';
import { newKeyPair } from '../samples.ts';
import { address, settle } from '../steps.ts';

const own = newKeyPair();
const file = applyCommands(
  { file: null, device: { ...own, listenPort: 51820, fwmark: null, peers: [] }, addresses: [] },
  [{ add: 'address', address }],
);

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'cpn-names-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

describe("the kernel's name of a tunnel", () => {
  const refuse: Run = async () => {
    throw new Error('no tool is needed');
  };

  it.each(['linux', 'freebsd'] as const)('is that of its file on %s', async (platform) => {
    expect(await wgQuickManager(refuse, platform).kernelName('cpn0', null)).toBe('cpn0');
  });

  it('is what wg-quick wrote on macOS, and none before, or with a name that is none', async () => {
    const names = makeFolder();
    const manager = wgQuickManager(refuse, 'darwin', names);
    expect(await manager.kernelName('cpn0', file)).toBeNull();
    writeFileSync(join(names, 'cpn0.name'), '');
    expect(await manager.kernelName('cpn0', file)).toBeNull();
    writeFileSync(join(names, 'cpn0.name'), 'utun7\n');
    expect(await manager.kernelName('cpn0', file)).toBe('utun7');
    expect(await manager.kernelName('cpn1', file)).toBeNull();
    writeFileSync(join(names, 'cpn0.name'), '../etc\n');
    await expect(manager.kernelName('cpn0', file)).rejects.toThrow('is not an interface name');
  });

  it('is that of the interface with its key on OpenBSD', async () => {
    const calls: string[] = [];
    const other = newKeyPair();
    const run: Run = async (tool, args) => {
      calls.push([tool, ...args].join(' '));
      return `wg0\t${other.publicKey}\nwg1\t${own.publicKey}\n`;
    };
    const manager = wgQuickManager(run, 'openbsd');
    expect(await manager.kernelName('cpn0', file)).toBe('wg1');
    expect(await manager.kernelName('cpn0', { ...file, config: { ...file.config, ...newKeyPair() } })).toBeNull();
    expect(calls).toEqual(Array(2).fill('wg show all public-key'));
    expect(await manager.kernelName('cpn0', null)).toBeNull();
    expect(calls).toHaveLength(2);
  });

  it.each([
    ['darwin', true],
    ['linux', false],
    ['freebsd', false],
    ['openbsd', false],
  ] as const)('has no route to its subnet on macOS alone: %s', (platform, lacks) => {
    expect(wgQuickManager(refuse, platform).lacksSubnetRoute).toBe(lacks);
  });
});

describe('wg-quick', () => {
  const failWith =
    (stderr: string): Run =>
    async (tool) => {
      throw new CommandFailed(tool, 1, stderr);
    };

  it.each([
    [
      '[#] ip link add cpn0 type wireguard; RTNETLINK answers: Operation not supported',
      'RTNETLINK answers: Operation not supported',
    ],
    ['[#] ip link add cpn0 type wireguard', '[#] ip link add cpn0 type wireguard'],
  ])('that fails is reported with its error, without the commands that it runs: %s', async (stderr, message) => {
    const manager = wgQuickManager(failWith(stderr), 'linux');
    for (const verb of ['up', 'down'] as const)
      await expect(manager[verb]('cpn-none', '/run/x.conf')).rejects.toMatchObject({
        ...{ name: 'CommandFailed', message: expect.stringContaining(`wg-quick ${verb} /run/x.conf`) },
        facts: { stderr: message },
      });
  });

  it('has minutes for a tunnel of thousands of routes, and may leave processes behind', async () => {
    const options: unknown[] = [];
    const run: Run = async (_tool, _args, given) => {
      options.push(given);
      return '';
    };
    await wgQuickManager(run, 'linux').up('cpn0', '/run/x.conf');
    expect(options).toEqual([{ deadlineMs: 180_000, daemon: true }]);
  });
});

describe('a host with wg-quick alone', () => {
  const open = () => {
    const calls: string[] = [];
    const run: Run = async (tool, args) => {
      calls.push([tool, ...args].join(' '));
      return '';
    };
    const host = portableHost({ run, files: tunnelFiles(makeFolder()), manager: wgQuickManager(run, 'linux') });
    return { host, calls };
  };

  it.each([
    [{ firewall: true, forwarding: true, fullTunnel: false }, 'a connector'],
    [{ firewall: false, forwarding: false, fullTunnel: true }, 'a full tunnel'],
  ])('refuses what needs Linux: %j', async (needs, what) => {
    await expect(open().host.check(needs)).rejects.toMatchObject({
      name: 'Unsupported',
      message: expect.stringContaining(what),
    });
  });

  it.each([
    [{ do: 'set-firewall', firewall: { link: 'cpn0', rules: [] } }, 'a connector'],
    [{ do: 'remove-firewall', link: 'cpn0' }, 'a connector'],
    [{ do: 'set-sysctl', key: 'net.ipv4.ip_forward', value: '1' }, 'a connector'],
    [{ do: 'open-port', link: 'cpn0', at: { by: 'ufw', port: 1, zone: null, permanent: true } }, 'ufw and firewalld'],
    [{ do: 'close-port', link: 'cpn0', at: { by: 'ufw', port: 1, zone: null, permanent: true } }, 'ufw and firewalld'],
    [settle({ add: 'route', prefix: '0.0.0.0/0' as never, table: '8349' }), 'a full tunnel'],
  ])('refuses the step %j, and changes nothing', async (step, what) => {
    const { host, calls } = open();
    await expect(host.apply(step as never)).rejects.toMatchObject({
      name: 'Unsupported',
      message: expect.stringContaining(what),
    });
    expect(calls).toEqual([]);
  });
});
