import type { Host } from '../lab/host.ts';

/** A disk of a host's state and wg-quick files that a test makes fail and recover. */
export interface FailingDisk {
  readonly how: string;
  /** The error of the operating system. */
  readonly code: 'ENOSPC' | 'EROFS';
  /** Before there is anything on it. */
  prepare(host: Host): Promise<void>;
  begin(host: Host): Promise<void>;
  end(host: Host): Promise<void>;
}

/** A disk of 256 KiB that is full. */
export const fullDisk: FailingDisk = {
  how: 'state and config folder full',
  code: 'ENOSPC',
  prepare: (host) => atBoth(host, 'mkdir -p "$1" && mount -t tmpfs -o size=256k,mode=700 tmpfs "$1"'),
  begin: (host) => atBoth(host, '! cat /dev/zero >"$1/filler" 2>/dev/null'),
  end: (host) => atBoth(host, 'rm "$1/filler"'),
};

/** A disk that the kernel makes read-only, as it does when it finds errors on it. */
export const readOnlyDisk: FailingDisk = {
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
