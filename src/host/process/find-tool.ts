import { accessSync, constants, statSync } from 'node:fs';
import { join } from 'node:path';
import { platform } from 'node:process';
import { MissingTool } from '../../core/errors/index.ts';

/**
 * The folders in which tools are searched. The PATH of the caller is not used, because it may
 * contain folders of other users. On macOS, wg-quick comes with Homebrew. On Apple processors, its
 * folder belongs to the user who installed it, and that user can become root through cpn.
 */
export const toolFolders: readonly string[] =
  platform === 'win32'
    ? ['C:\\Program Files\\WireGuard']
    : [
        ...['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'],
        ...(platform === 'darwin' ? ['/opt/homebrew/bin'] : []),
      ];

/** The tools that cpn runs, and how to install them. */
export const remedies = {
  wg: 'install it: apt install wireguard-tools',
  'wg-quick': 'install wireguard-tools: apt, brew or pkg install wireguard-tools, pkg_add wireguard-tools on OpenBSD',
  wireguard: 'install WireGuard for Windows',
  ip: 'install it: apt install iproute2',
  nft: 'install it: apt install nftables',
  'iptables-legacy-save': 'install it: apt install iptables',
  ping: 'install it: apt install iputils-ping',
  ufw: 'install it: apt install ufw',
  'firewall-cmd': 'install it: apt install firewalld',
  systemctl: 'it is part of systemd: apt install systemd',
  'systemd-notify': 'it is part of systemd: apt install systemd',
  'wireguard-go': 'install it: apt install wireguard-go',
  busctl: 'it is part of systemd: apt install systemd',
  resolvectl: 'it is part of systemd-resolved: apt install systemd-resolved',
  dnsmasq: 'install it: apt install dnsmasq',
  nmcli: 'it is part of NetworkManager: apt install network-manager',
  'unbound-control': 'it is part of unbound: apt install unbound',
  'unbound-checkconf': 'it is part of unbound: apt install unbound',
  journalctl: 'it is part of systemd',
  sh: 'it is part of every Unix',
  'boringtun-cli': 'install it: cargo install boringtun-cli, into /usr/local/bin',
} as const;

export type Tool = keyof typeof remedies;

/** The first executable regular file of its name that is not world-writable. @throws MissingTool */
export async function findTool(tool: Tool, folders: readonly string[] = toolFolders): Promise<string> {
  for (const folder of folders) {
    const path = join(folder, platform === 'win32' ? `${tool}.exe` : tool);
    if (isExecutable(path)) return path;
  }
  throw new MissingTool(tool, remedies[tool]);
}

function isExecutable(path: string): boolean {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return false;
    accessSync(path, constants.X_OK);
    // Windows has no such modes. Only administrators can write to Program Files.
    return stats.isFile() && (platform === 'win32' || (stats.mode & 0o002) === 0);
  } catch {
    return false;
  }
}
