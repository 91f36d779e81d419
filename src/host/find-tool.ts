import { access, constants, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { MissingTool } from '../core/errors.ts';

/** Where tools are looked for; the caller's PATH may hold somebody else's. */
export const toolFolders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'] as const;

/** The tools that are run, and how a person gets them. */
export const remedies = {
  wg: 'install it: apt install wireguard-tools',
  ip: 'install it: apt install iproute2',
  nft: 'install it: apt install nftables',
  ping: 'install it: apt install iputils-ping',
  systemctl: 'it is a part of systemd: apt install systemd',
  'systemd-notify': 'it is a part of systemd: apt install systemd',
  'wireguard-go': 'install it: apt install wireguard-go',
  journalctl: 'its journal is a part of systemd',
  'boringtun-cli': 'install it: cargo install boringtun-cli, into /usr/local/bin',
} as const;

export type Tool = keyof typeof remedies;

/** The path of a tool: the first regular file of its name that may be executed, and that not everybody may write. */
export async function findTool(tool: Tool, folders: readonly string[] = toolFolders): Promise<string> {
  for (const folder of folders) {
    const path = join(folder, tool);
    if (await isExecutable(path)) return path;
  }
  throw new MissingTool(tool, remedies[tool]);
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    const stats = await stat(path);
    return stats.isFile() && (stats.mode & 0o002) === 0;
  } catch {
    return false;
  }
}
