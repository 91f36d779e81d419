/**
 * Whether this machine can run a lab: tries once, in temporary namespaces, all that a lab does.
 *
 * @module
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';

/** What {@link labSupport} finds: how hosts can be made, or what is missing, in words for a person. */
export type LabSupport =
  | { readonly possible: true; readonly how: 'root' | 'user namespace' }
  | { readonly possible: false; readonly needs: string };

const COMMANDS = ['unshare', 'nsenter', 'mount', 'find', 'hostname', 'ip', 'nft', 'wg', 'ping', 'ps'];

/** Prints what fails and why; the first words of each step are for a person. */
const PROBE = `
try() { what=$1; shift; "$@" >/dev/null 2>&1 || { echo "$what"; exit 1; }; }
try 'bind mounts' mount --bind /etc /mnt
try 'read-only bind mounts' mount -o remount,bind,ro /mnt
try 'mounting /proc' mount -t proc proc /proc
try 'mounting /sys' mount -t sysfs sysfs /sys
try 'setting a host name' hostname probe
try 'bridges' ip link add name b0 type bridge
try 'veth pairs' ip link add name v0 type veth peer name v1
try 'nftables with masquerade' nft 'table ip t { chain c { type nat hook postrouting priority 100; masquerade; }; }'
ip link add name w0 type wireguard 2>/dev/null && exit 0
try 'the command wireguard-go, as the kernel has no WireGuard' command -v wireguard-go
try 'opening /dev/net/tun, as the kernel has no WireGuard' ip tuntap add dev t0 mode tun
`;

let found: LabSupport | undefined;

/** Finds out whether a lab can be started here, once a process. */
export function labSupport(): LabSupport {
  found ??= findSupport();
  return found;
}

/** The owner's PATH, and where Debian keeps administrators' tools, which a user's PATH often lacks. */
export function labPath(): string {
  return [process.env.PATH, '/usr/local/sbin', '/usr/sbin', '/sbin'].filter((part) => part).join(':');
}

function findSupport(): LabSupport {
  const missing = COMMANDS.filter(
    (command) =>
      !labPath()
        .split(':')
        .some((folder) => isExecutable(join(folder, command))),
  );
  if (missing.length > 0) return { possible: false, needs: `the commands ${missing.join(', ')}: run scripts/setup` };
  const asRoot = process.getuid?.() === 0 ? probe([]) : 'root';
  if (asRoot === undefined) return { possible: true, how: 'root' };
  const asUser = probe(['--user', '--map-root-user']);
  if (asUser === undefined) return { possible: true, how: 'user namespace' };
  return { possible: false, needs: asRoot === 'root' ? `root, or for a user namespace: ${asUser}` : asRoot };
}

/** The first thing that fails, or undefined. */
function probe(user: readonly string[]): string | undefined {
  const args = ['--net', '--mount', '--uts', '--pid', '--fork', '--kill-child', ...user, 'sh', '-c', PROBE];
  const options = { encoding: 'utf8', timeout: 10_000, env: { PATH: labPath() } } as const;
  const { status, stdout, stderr, error } = spawnSync('unshare', args, options);
  if (status === 0) return undefined;
  return stdout.trim() || stderr.trim() || error?.message || 'unshare failed';
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
