import { readFile } from 'node:fs/promises';
import { CommandFailed } from '../../core/errors.ts';
import { keyPairOf } from '../../core/keys.ts';
import { parseLinkName } from '../../core/link-name.ts';
import { changeDevice, type DeviceStep } from '../change-device.ts';
import { awaitEnd } from '../control-socket.ts';
import type { Tool } from '../find-tool.ts';
import { type Run, saidBy } from '../run.ts';
import type { TunnelFile } from './tunnel-file.ts';

/** A program that makes a whole tunnel of a file and takes it away again, and how WireGuard's own table is changed beside it. */
export interface TunnelManager {
  /** What people call it. */
  readonly name: string;
  readonly tools: readonly Tool[];
  /** Whether an address brings no route to its subnet along here. */
  readonly lacksSubnetRoute: boolean;
  /** Makes the interface, its addresses, MTU and routes. @throws CommandFailed with nothing made */
  up(link: string, path: string): Promise<void>;
  /** Takes all of that away, and returns when it is gone. @throws CommandFailed where it is no WireGuard interface */
  down(link: string, path: string): Promise<void>;
  /** Changes the table; `link` of the step is the name that `wg` knows. @throws CommandFailed */
  change(step: DeviceStep): Promise<void>;
  /** The name under which `wg` and the kernel know a tunnel; null where there is none. */
  realName(link: string, file: TunnelFile | null): Promise<string | null>;
}

/** With thousands of routes, for each of which it starts a process: 5,000 take 47 s. */
const deadlineMs = 180_000;

/** Where wg-quick of macOS writes the name that the kernel chose. */
const usualNames = '/var/run/wireguard';

/**
 * `wg-quick` as it is on `platform`. Linux and FreeBSD give an interface the name of its file. macOS calls it utunN, and wg-quick
 * writes that name into NAME.name; OpenBSD calls it wgN, and where only `wg` may be asked it is known by its key.
 */
export function wgQuickManager(run: Run, platform: NodeJS.Platform, names = usualNames): TunnelManager {
  return {
    name: 'wg-quick',
    tools: ['wg', 'wg-quick'],
    lacksSubnetRoute: platform === 'darwin',
    // A WireGuard in user space, and on some systems a monitor of routes, stay behind.
    up: (_, path) => call(run, 'up', path),
    async down(link, path) {
      await call(run, 'down', path);
      await awaitEnd(link);
    },
    change: (step) => changeDevice(run, step),
    async realName(link, file) {
      if (platform === 'darwin') return readName(`${names}/${link}.name`);
      return platform === 'openbsd' ? findByKey(run, file) : link;
    },
  };
}

/** It prints each command that it runs: of what it says only the rest is told. */
async function call(run: Run, verb: 'up' | 'down', path: string): Promise<void> {
  try {
    await run('wg-quick', [verb, path], { deadlineMs, daemon: true });
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    const said = saidBy(error).split('; ');
    const told = said.filter((line) => !line.startsWith('[#] '));
    const words = told.length === 0 ? said : told;
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
