import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** What the disk takes to be seen, in the order in which it loads; another one hangs. */
const drivers = [
  ...['virtio_ring', 'virtio', 'virtio_pci_modern_dev', 'virtio_pci_legacy_dev'],
  ...['virtio_pci', 'virtio_mmio', 'virtio_blk'],
];

/** The first process: loads the drivers, and leaves the rest to the system on the disk. */
const init = `#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
for driver in ${drivers.join(' ')}; do /bin/busybox insmod /$driver.ko; done
tries=0
until [ -b /dev/vda ] || [ $tries -ge 100 ]; do tries=$((tries + 1)); /bin/busybox usleep 50000; done
/bin/busybox mount -t ext4 -o rw /dev/vda /root
/bin/busybox mount --move /dev /root/dev
exec /bin/busybox switch_root /root /sbin/init
`;

/** Writes an initrd of busybox and the drivers, 1.2 MB, so that nothing of this machine's own is needed. */
export function buildInitrd(modules: string, tree: string, file: string): void {
  for (const folder of ['bin', 'dev', 'root']) mkdirSync(join(tree, folder), { recursive: true });
  cpSync('/bin/busybox', join(tree, 'bin/busybox'), { dereference: true });
  const paths = readdirSync(join(modules, 'kernel/drivers'), { recursive: true, encoding: 'utf8' });
  for (const driver of drivers) {
    const path = paths.find((each) => basename(each) === `${driver}.ko`);
    if (path === undefined) throw new Error(`${modules} has no ${driver}.ko`);
    cpSync(join(modules, 'kernel/drivers', path), join(tree, `${driver}.ko`));
  }
  writeFileSync(join(tree, 'init'), init, { mode: 0o755 });
  const pack = 'cd "$1" && find . | cpio --quiet -o -H newc | gzip -1 >"$2"';
  const { status, stderr } = spawnSync('sh', ['-euc', pack, 'sh', tree, file], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`the initrd cannot be packed: ${stderr}`);
}
