import { readFile } from 'node:fs/promises';
import { release } from 'node:os';
import { CpnError } from '../../core/errors/index.ts';
import type { Inspector } from '../host.ts';
import { inspectTool, readDiskSpace, readFileFacts } from '../inspections.ts';
import type { Tool } from '../process/find-tool.ts';
import type { PortableContext } from './observe.ts';

/**
 * Inspects tools, privileges, files and disk space of a host without the tools of Linux. Other
 * subjects would need programs that differ between platforms. `unexamined` lists them.
 */
export function portableInspector({ run, manager }: PortableContext): Inspector {
  return {
    unexamined: new Set(['kernel', 'managers', 'ports', 'forwarding', 'mtu']),
    tools: () => Promise.all(manager.tools.map((tool) => inspectTool(run, tool, versionFlags[tool] ?? null))),
    kernel: async () => ({ release: release(), wireguard: false, tun: false }),
    mayAdminister: async () => effectiveUser() === 0,
    user: effectiveUser,
    managers: async () => [],
    preparedManagers: async () => [],
    file: readFileFacts,
    space: readDiskSpace,
    async holder(path) {
      const [, pid] = /^(\d{1,10})\s*$/.exec(await readFile(path, 'utf8').catch(() => '')) ?? [];
      return pid === undefined ? null : { pid: Number(pid), alive: isAlive(Number(pid)) };
    },
    udpPorts: async () => new Set(),
    async diagnostics() {
      // Without `dump`, `wg show` hides private and preshared keys.
      const shown = await run('wg', ['show'], { deadlineMs: 10_000 }).catch((error) => {
        if (error instanceof CpnError) return `not available: ${error.message}\n`;
        throw error;
      });
      return new Map([['wg-show.txt', shown]]);
    },
  };
}

/** The other tools have no such flag. */
const versionFlags: Partial<Record<Tool, string>> = { wg: '--version' };

function effectiveUser(): number {
  return process.geteuid?.() ?? 0;
}

/** True for any process with that id, which may not be our daemon. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
