import { readFile } from 'node:fs/promises';
import { release } from 'node:os';
import { CpnError } from '../../core/errors.ts';
import { describeFile, lookForTool, measureSpace } from '../describe-file.ts';
import type { Tool } from '../find-tool.ts';
import type { Inspector } from '../inspector.ts';
import type { Portable } from './observe.ts';

/**
 * A check-up of a host without the tools of Linux: its tools, privileges, files and disk, and its networks as a pass sees them. The
 * rest would take programs that are others on each system, and is told to be left out.
 */
export function portableInspector({ run, manager }: Portable): Inspector {
  return {
    unexamined: new Set(['kernel', 'managers', 'ports', 'forwarding', 'mtu']),
    tools: () => Promise.all(manager.tools.map((tool) => lookForTool(run, tool, versionFlags[tool] ?? null))),
    kernel: async () => ({ release: release(), wireguard: false, tun: false }),
    mayAdminister: async () => user() === 0,
    user,
    managers: async () => [],
    preparedManagers: async () => [],
    file: describeFile,
    space: measureSpace,
    async holder(path) {
      const [, pid] = /^(\d{1,10})\s*$/.exec(await readFile(path, 'utf8').catch(() => '')) ?? [];
      return pid === undefined ? null : { pid: Number(pid), alive: isAlive(Number(pid)) };
    },
    udpPorts: async () => new Set(),
    async prints() {
      // Without `dump` it hides private and preshared keys itself.
      const shown = await run('wg', ['show'], { deadlineMs: 10_000 }).catch((error) => {
        if (error instanceof CpnError) return `cannot be had: ${error.message}\n`;
        throw error;
      });
      return new Map([['wg-show.txt', shown]]);
    },
  };
}

/** The other tools have none. */
const versionFlags: Partial<Record<Tool, string>> = { wg: '--version' };

function user(): number {
  return process.geteuid?.() ?? 0;
}

/** Of any process of that number: whether it is a daemon of ours cannot be told here. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
