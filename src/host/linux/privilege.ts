import { readFileSync } from 'node:fs';
import { MissingPrivilege } from '../../core/errors/index.ts';

/** CAP_NET_ADMIN of include/uapi/linux/capability.h. */
const netAdmin = 1n << 12n;

/** @throws MissingPrivilege without CAP_NET_ADMIN, which root in a container may lack too */
export async function checkPrivilege(): Promise<void> {
  const status = readStatus();
  if (status === null ? process.geteuid?.() === 0 : mayAdminister(status)) return;
  throw new MissingPrivilege('cpn', 'run it with sudo, or give the container or unit NET_ADMIN');
}

function readStatus(): string | null {
  try {
    return readFileSync('/proc/self/status', 'utf8');
  } catch {
    return null;
  }
}

/** Parses the effective capabilities in /proc/self/status (proc_pid_status(5)). */
export function mayAdminister(status: string): boolean {
  const [, effective] = /^CapEff:\s*([0-9a-f]+)$/m.exec(status) ?? [];
  return effective !== undefined && (BigInt(`0x${effective}`) & netAdmin) !== 0n;
}
