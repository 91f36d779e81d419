import { type SpawnOptions, spawn } from 'node:child_process';
import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { command } from '../../packaging/command.ts';
import type { Image } from './image.ts';

/** Where a host runs its job: `job` is what it is given, `out` what it leaves, `console` all that it says. */
export interface Place {
  readonly job: string;
  readonly out: string;
  readonly console: string;
  /** For what is gone afterwards. */
  readonly work: string;
}

/** A machine that hangs is ended then. */
export const limitMs = 480_000;

/**
 * Boots the image in an emulated machine, whose restarts and power cuts are its own, and returns when it is off. The emulation is of
 * qemu alone, also where this machine could help: what is tested everywhere must be the same. An older processor is emulated a fifth
 * quicker than the newest.
 */
export async function runMachine({ disk, kernel, initrd }: Image, { job, out, console, work }: Place): Promise<void> {
  const [jobDisk, outDisk] = [join(work, 'job.img'), join(work, 'out.img')];
  command(['mkfs.ext4', '-q', '-d', job, jobDisk, '600M']);
  writeFileSync(outDisk, '');
  truncateSync(outDisk, 64 * 1024 * 1024);
  const drive = (file: string, ...more: string[]) => [
    '-drive',
    [`file=${file}`, 'format=raw', 'if=virtio', ...more].join(','),
  ];
  const argv = [
    'qemu-system-x86_64',
    ...['-M', 'q35', '-accel', 'tcg,thread=multi,tb-size=512', '-cpu', 'Nehalem', '-smp', '2', '-m', '2048'],
    ...['-nodefaults', '-display', 'none', '-serial', `file:${console}`, '-net', 'none'],
    ...['-kernel', kernel, '-initrd', initrd],
    ...['-append', 'console=ttyS0 root=/dev/vda rw quiet mitigations=off panic=-1'],
    ...[...drive(disk, 'snapshot=on'), ...drive(jobDisk, 'readonly=on'), ...drive(outDisk)],
  ];
  try {
    await runToEnd(argv, { stdio: ['ignore', 'ignore', 'inherit'] });
  } finally {
    mkdirSync(out, { recursive: true });
    // Nothing is on it before the first step ended.
    command(['sh', '-c', 'tar -xf "$1" -C "$2" 2>/dev/null || true', 'sh', outDisk, out]);
    for (const file of [jobDisk, outDisk]) rmSync(file);
  }
}

/** Runs a program to its end, which comes by force after {@link limitMs} and with our own. @returns its exit code */
export function runToEnd(argv: readonly string[], options: SpawnOptions): Promise<number | null> {
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  // Also where we have no time to end it.
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...argv], options);
  const end = () => child.kill('SIGKILL');
  const timer = setTimeout(end, limitMs);
  process.once('exit', end);
  child.once('error', reject);
  child.once('exit', (code) => {
    clearTimeout(timer);
    process.off('exit', end);
    resolve(code);
  });
  return promise;
}
