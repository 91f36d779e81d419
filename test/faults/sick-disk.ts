import type { Host } from '../lab/host.ts';

/** A disk that takes nothing more, as a test makes and mends it: that of a host's state and wg-quick files. */
export interface SickDisk {
  readonly how: string;
  /** What the operating system says of it. */
  readonly code: 'ENOSPC' | 'EROFS';
  /** Before there is anything on it. */
  prepare(host: Host): Promise<void>;
  begin(host: Host): Promise<void>;
  end(host: Host): Promise<void>;
}

/** A disk of 256 KiB, which somebody fills to the last byte. */
export const fullDisk: SickDisk = {
  how: 'state and config folder full',
  code: 'ENOSPC',
  prepare: (host) => atBoth(host, 'mkdir -p "$1" && mount -t tmpfs -o size=256k,mode=700 tmpfs "$1"'),
  begin: (host) => atBoth(host, '! cat /dev/zero >"$1/filler" 2>/dev/null'),
  end: (host) => atBoth(host, 'rm "$1/filler"'),
};

/** A disk that the kernel makes read-only, as it does when it finds errors on it. */
export const readOnlyDisk: SickDisk = {
  how: 'state and config folder read-only',
  code: 'EROFS',
  prepare: (host) => atBoth(host, 'mkdir -p -m 700 "$1" && mount --bind "$1" "$1"'),
  begin: (host) => atBoth(host, 'mount -o remount,bind,ro "$1"'),
  end: (host) => atBoth(host, 'mount -o remount,bind,rw "$1"'),
};

/** Runs a script on the host for each of the two folders, `$1`. */
async function atBoth(host: Host, script: string): Promise<void> {
  for (const folder of [host.stateDir, host.configDir]) await host.exec(['sh', '-c', script, 'sh', folder]);
}

/** A file as the host itself sees it; what is mounted there cannot be seen from outside. */
export async function readInside(host: Host, path: string): Promise<string> {
  return (await host.exec(['cat', path])).stdout;
}
