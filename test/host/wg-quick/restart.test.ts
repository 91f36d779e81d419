import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CommandFailed } from '../../../src/core/errors/index.ts';
import type { Run } from '../../../src/host/process/run.ts';
import { portableHost } from '../../../src/host/wg-quick/portable-host.ts';
import { parseTunnelFile, type TunnelFile, tunnelFiles } from '../../../src/host/wg-quick/tunnel-files.ts';
import type { TunnelManager } from '../../../src/host/wg-quick/tunnel-manager.ts';
import type { DeviceStep } from '../../../src/host/wireguard/wg.ts';
import { makePeer, newKeyPair } from '../samples.ts';
import { address, configure, create, destroy, question, settle } from '../steps.ts';

const { privateKey } = newKeyPair();
const usual = [{ set: 'alias', value: 'cpn:7' } as const, { set: 'mtu', value: 1380 } as const];
const comeUp = settle(...usual, { add: 'address', address });

/** A host with a tunnel manager in memory, of which `up` fails where the test says. */
function start({ lacksSubnetRoute = false } = {}) {
  const folder = join(mkdtempSync(join(tmpdir(), 'cpn-restart-')), 'tunnels');
  onTestFinished(() => rmSync(join(folder, '..'), { recursive: true, force: true }));
  const files = tunnelFiles(folder);
  const present = new Map<string, TunnelFile>();
  const calls: string[] = [];
  const changes: DeviceStep[] = [];
  const failing = { isRefused: (_: TunnelFile): boolean => false };
  const run: Run = async (tool, args) => {
    const config = present.get(args[1]?.replace(/^k-/, '') ?? '')?.config;
    if (args[0] === 'show' && args[1] === 'interfaces') return [...present.keys()].join(' ');
    if (args[0] !== 'show') {
      calls.push([tool, ...args.map((word) => (word.length === 44 ? 'KEY' : word))].join(' '));
      return '';
    }
    if (config === undefined) throw new CommandFailed('wg', 1, 'No such device');
    return `${config.privateKey.reveal()}\t(none)\t${config.listenPort ?? 0}\toff\n`;
  };
  const manager: TunnelManager = {
    ...{ name: 'one in memory', tools: [], lacksSubnetRoute },
    async up(link, path) {
      const file = parseTunnelFile(readFileSync(path, 'utf8'));
      calls.push(`up ${link} ${file.config.mtu}`);
      if (failing.isRefused(file)) throw new CommandFailed('wg-quick up', 1, `not with ${file.config.mtu}`);
      present.set(link, file);
    },
    async down(link) {
      calls.push(`down ${link}`);
      present.delete(link);
    },
    async change(step) {
      changes.push(step);
    },
    // As on macOS, it differs.
    kernelName: async (link) => (present.has(link) ? `k-${link}` : null),
  };
  const host = portableHost({ run, files, manager });
  return { host, files, present, calls, changes, failing };
}

async function startUp(options = {}) {
  const started = start(options);
  const { host, calls, changes } = started;
  for (const step of [create, configure({ privateKey, listenPort: 51820 }), comeUp]) await host.apply(step);
  expect(changes).toEqual([]);
  calls.length = 0;
  return started;
}

describe('a tunnel that is restarted with another MTU', () => {
  const other = settle({ set: 'mtu', value: 1280 });

  it('is the former one again where the new one does not come up', async () => {
    const { host, files, calls, failing } = await startUp();
    failing.isRefused = ({ config }) => config.mtu === 1280;
    await expect(host.apply(other)).rejects.toThrow('not with 1280');
    expect(calls).toEqual(['down cpn0', 'up cpn0 1280', 'up cpn0 1380']);
    expect(await files.read('cpn0')).toMatchObject({ alias: 'cpn:7', config: { mtu: 1380 } });
  });

  it('fails with its first error where the former one does not come up either, and leaves no file', async () => {
    const { host, files, failing } = await startUp();
    failing.isRefused = () => true;
    await expect(host.apply(other)).rejects.toThrow('not with 1280');
    expect(await files.list()).toEqual([]);
  });
});

it('a tunnel that does not come up leaves no file with its key', async () => {
  const { host, files, failing } = start();
  failing.isRefused = () => true;
  await host.apply(create);
  await host.apply(configure({ privateKey }));
  await expect(host.apply(comeUp)).rejects.toThrow('not with 1380');
  expect(await files.list()).toEqual([]);
});

it('a placeholder peer is removed by the name that the kernel has for the interface', async () => {
  const { host, calls } = start({ lacksSubnetRoute: true });
  for (const step of [create, configure({ privateKey }), comeUp]) await host.apply(step);
  expect(calls).toEqual(['up cpn0 1380', 'wg set k-cpn0 peer KEY remove']);
});

describe('what is configured before a tunnel exists', () => {
  it('ends with the plan that deletes the tunnel', async () => {
    const { host, changes } = start();
    await host.apply(create);
    await host.apply(destroy);
    await host.apply(configure({ peers: [makePeer()] }));
    expect(changes).toHaveLength(1);
  });

  it('is used once: later steps change the interface', async () => {
    const { host, changes } = await startUp();
    await host.apply(configure({ peers: [makePeer()] }));
    expect(changes).toMatchObject([{ do: 'configure-device', link: 'k-cpn0' }]);
  });

  it('ends once the interface is observed', async () => {
    const { host, changes } = await startUp();
    await host.apply(create);
    await host.observe(question);
    await host.apply(configure({ peers: [makePeer()] }));
    expect(changes).toHaveLength(1);
  });
});

it('a new private key is in the file too, which another key takes out of use', async () => {
  const { host, files, present } = await startUp();
  const next = newKeyPair();
  await host.apply(configure({ privateKey: next.privateKey }));
  expect((await files.read('cpn0'))?.config.privateKey.reveal()).toBe(next.privateKey.reveal());
  // The device in memory still has the former key, as after a change by another program.
  expect(await host.observe(question)).toMatchObject({ link: { alias: null }, routes: [] });
  const file = await files.read('cpn0');
  if (file) present.set('cpn0', file);
  expect(await host.observe(question)).toMatchObject({ link: { alias: 'cpn:7' } });
});

it('the file of an interface that is gone is removed with the tunnel, and nothing is taken down', async () => {
  const { host, files, present, calls } = await startUp();
  present.clear();
  await host.apply(destroy);
  expect([calls, await files.list()]).toEqual([[], []]);
});
