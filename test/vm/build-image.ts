import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { command } from '../../packaging/command.ts';
import { buildInitrd } from './initrd.ts';
import { fetchKernel } from './kernel.ts';

/**
 * The package's own needs, those of a system that boots, and a WireGuard in user space: where the kernel has one, that must win. Two
 * resolvers too, of which NetworkManager is started by a step.
 */
const packages = [
  ...['systemd', 'systemd-sysv', 'udev', 'dbus', 'kmod', 'procps'],
  ...['wireguard-tools', 'iproute2', 'nftables', 'libstdc++6', 'iputils-ping', 'wireguard-go'],
  ...['systemd-resolved', 'libnss-resolve', 'network-manager', 'dnsmasq-base'],
];

/** The services around the package: a second host, a service that needs the tunnel, and the one that runs the job. */
export const units = join(import.meta.dirname, 'guest/units');

/** What would change files while the host is compared with itself, or takes the time of an emulated machine. */
const masked = [
  ...['apt-daily.timer', 'apt-daily-upgrade.timer', 'dpkg-db-backup.timer', 'e2scrub_all.timer', 'fstrim.timer'],
  ...['systemd-tmpfiles-clean.timer', 'e2scrub_reap.service', 'getty@tty1.service', 'serial-getty@ttyS0.service'],
  ...['console-getty.service', 'systemd-update-utmp.service', 'systemd-udev-settle.service'],
];

/** Builds an image in the folder `image` below, and returns the version of its kernel. */
export function buildImage(work: string): string {
  const [root, image] = [join(work, 'root'), join(work, 'image')];
  mkdirSync(image);
  const include = `--include=${packages.join(',')}`;
  command(['mmdebstrap', '--mode=root', '--variant=minbase', '--quiet', include, 'bookworm', root]);
  const { version, boot, modules, release } = fetchKernel(work);
  cpSync(boot, join(image, 'vmlinuz'));
  buildInitrd(modules, join(work, 'initrd'), join(image, 'initrd'));
  settle(root);
  // A container has the kernel of its host, and no modules.
  command(['tar', '-C', root, '-cf', join(image, 'files.tar'), '.']);
  cpSync(modules, join(root, 'lib/modules', release), { recursive: true });
  command(['depmod', '-b', root, release]);
  command(['mkfs.ext4', '-q', '-d', root, join(image, 'disk.img'), '1500M']);
  return version;
}

/** Gives a fresh system a name, and the unit that runs the job it is given. */
function settle(root: string): void {
  const put = (path: string, text: string | Uint8Array, mode = 0o644) =>
    writeFileSync(join(root, path), text, { mode });
  put('etc/hostname', 'edge-1\n');
  put('etc/hosts', '127.0.0.1 localhost\n127.0.1.1 edge-1\n');
  put('etc/fstab', '');
  // Made at the first boot, without a prompt for the host's settings.
  put('etc/machine-id', '');
  put('usr/local/sbin/vm-test', readFileSync(join(import.meta.dirname, 'guest/start')), 0o755);
  cpSync(units, join(root, 'etc/systemd/system'), { recursive: true });
  command(['systemctl', `--root=${root}`, 'enable', ...listFiles(units).filter((file) => file.endsWith('.service'))]);
  command(['systemctl', `--root=${root}`, 'mask', ...masked]);
  command(['systemctl', `--root=${root}`, 'disable', 'NetworkManager.service']);
}

/** The files below a folder, by their paths in it. */
export function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}
