import { readFile } from 'node:fs/promises';
import { keyPairOf } from '../../core/crypto/keys.ts';
import { CommandFailed } from '../../core/errors/index.ts';
import { parseLinkName } from '../../core/net/link-name.ts';
import { stderrOf } from '../process/command-error.ts';
import type { Tool } from '../process/find-tool.ts';
import type { Run } from '../process/run.ts';
import { waitForExit } from '../wireguard/userspace.ts';
import { changeDevice, type DeviceStep } from '../wireguard/wg.ts';
import type { TunnelFile } from './tunnel-files.ts';

/** Creates and removes a whole tunnel from a file, and changes its device while it is up. */
export interface TunnelManager {
  /** The name for messages. */
  readonly name: string;
  readonly tools: readonly Tool[];
  /** True if an address has no route to its subnet on this platform. */
  readonly lacksSubnetRoute: boolean;
  /** Creates the interface with its addresses, MTU and routes, or nothing. @throws CommandFailed */
  up(link: string, path: string): Promise<void>;
  /** Removes all of that, and waits. @throws CommandFailed if it is no WireGuard interface */
  down(link: string, path: string): Promise<void>;
  /** Changes the device. `link` of the step is the kernel's name. @throws CommandFailed */
  change(step: DeviceStep): Promise<void>;
  /** The name of the interface for `wg` and the kernel. Null if no interface exists. */
  kernelName(link: string, file: TunnelFile | null): Promise<string | null>;
}

/** wg-quick starts a process for each route: 5,000 take 47 s. */
const deadlineMs = 180_000;

/** The folder in which wg-quick writes the kernel's names on macOS. */
const defaultNameFolder = '/var/run/wireguard';

/**
 * On Linux and FreeBSD, an interface has the name of its file. On macOS it is utunN, which wg-quick
 * writes into NAME.name. On OpenBSD it is wgN, identified by its key.
 */
export function wgQuickManager(run: Run, platform: NodeJS.Platform, names = defaultNameFolder): TunnelManager {
  return {
    name: 'wg-quick',
    tools: ['wg', 'wg-quick'],
    lacksSubnetRoute: platform === 'darwin',
    // It leaves processes behind: a userspace WireGuard, and on some platforms a route monitor.
    up: (_, path) => runWgQuick(run, 'up', path),
    async down(link, path) {
      await runWgQuick(run, 'down', path);
      await waitForExit(link);
    },
    change: (step) => changeDevice(run, step),
    async kernelName(link, file) {
      if (platform === 'darwin') return readName(`${names}/${link}.name`);
      return platform === 'openbsd' ? findByKey(run, file) : link;
    },
  };
}

/** wg-quick prints each command that it runs as `[#] …`. The error leaves these lines out. */
async function runWgQuick(run: Run, verb: 'up' | 'down', path: string): Promise<void> {
  try {
    await run('wg-quick', [verb, path], { deadlineMs, daemon: true });
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    const lines = stderrOf(error).split('; ');
    const messages = lines.filter((line) => !line.startsWith('[#] '));
    const words = messages.length === 0 ? lines : messages;
    throw new CommandFailed(`wg-quick ${verb} ${path}`, error.facts.exitCode as number | null, words.join('; '));
  }
}

async function readName(path: string): Promise<string | null> {
  const name = await readFile(path, 'utf8').catch(() => '');
  return name === '' ? null : parseLinkName(name.trim(), path);
}

async function findByKey(run: Run, file: TunnelFile | null): Promise<string | null> {
  if (file === null) return null;
  const { publicKey } = keyPairOf(file.config.privateKey);
  const lines = (await run('wg', ['show', 'all', 'public-key'])).split('\n').map((line) => line.split('\t'));
  return lines.find(([, key]) => key === publicKey)?.[0] ?? null;
}
