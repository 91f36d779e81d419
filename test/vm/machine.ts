import { mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { command } from '../../packaging/command.ts';
import type { Image } from './image.ts';
import { isLockedUp, mostBoots, readConsole, runToEnd, sizeOf } from './run-to-end.ts';

/** Where a host runs its job: `job` is its input, `out` its results, `console` its console output. */
export interface Place {
  readonly job: string;
  readonly out: string;
  readonly console: string;
  /** For what is gone afterwards. */
  readonly work: string;
  /** Kills the host. */
  readonly signal: AbortSignal;
}

/** The kernel's last line when it does not restart. */
const off = 'reboot: Power down';

/**
 * The kernel's options. A busy machine delays the first ticks of the timer, and the kernel's check of the timer panics then. Where each
 * process has addresses of its own, qemu translates a library again for each process: a command takes three times as long.
 */
const options = 'console=ttyS0 root=/dev/vda rw quiet mitigations=off panic=-1 no_timer_check norandmaps';

/**
 * Boots the image in an emulated machine, again after each restart and power cut, and returns when it is off. Each boot is a process
 * of its own: a qemu that restarts keeps the translated code of the boot before, and can take minutes to forget the code of one page
 * when the next boot writes there. The emulation is of qemu alone, also where this machine could help: what is tested everywhere must
 * be the same. An older processor is emulated a fifth quicker than the newest.
 *
 * Qemu can lock up a kernel that patches its own code while it loads modules. Such a boot starts again.
 */
export async function runMachine(
  { disk, kernel, initrd }: Image,
  { job, out, console, work, signal }: Place,
): Promise<void> {
  const [ownDisk, jobDisk, outDisk] = [join(work, 'disk.img'), join(work, 'job.img'), join(work, 'out.img')];
  command(['cp', '--sparse=always', disk, ownDisk]);
  command(['mkfs.ext4', '-q', '-d', job, jobDisk, '600M']);
  writeFileSync(outDisk, '');
  truncateSync(outDisk, 64 * 1024 * 1024);
  writeFileSync(console, '');
  // This machine keeps its power: a write of the guest need not reach this machine's disk.
  const drive = (file: string, ...more: string[]) => [
    '-drive',
    [`file=${file}`, 'format=raw', 'if=virtio', 'cache=unsafe', ...more].join(','),
  ];
  const argv = [
    'qemu-system-x86_64',
    ...['-M', 'q35', '-accel', 'tcg,thread=multi,tb-size=512', '-cpu', 'Nehalem', '-smp', '2', '-m', '2048'],
    ...['-nodefaults', '-no-reboot', '-display', 'none', '-net', 'none'],
    ...['-chardev', `file,id=console,path=${console},append=on`, '-serial', 'chardev:console'],
    ...['-kernel', kernel, '-initrd', initrd, '-append', options],
    ...[...drive(ownDisk), ...drive(jobDisk, 'readonly=on'), ...drive(outDisk)],
  ];
  try {
    for (let boot = 0; boot < mostBoots && !readFileSync(console, 'utf8').includes(off); boot++) {
      const size = sizeOf(console);
      const code = await runToEnd(argv, console, { stdio: ['ignore', 'ignore', 'inherit'], signal });
      if (code !== 0 && !isLockedUp(readConsole(console, size))) return;
    }
  } finally {
    mkdirSync(out, { recursive: true });
    // Nothing is on it before the first step ended.
    command(['sh', '-c', 'tar -xf "$1" -C "$2" 2>/dev/null || true', 'sh', outDisk, out]);
    for (const file of [ownDisk, jobDisk, outDisk]) rmSync(file);
  }
}
