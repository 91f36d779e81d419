import { readFile } from 'node:fs/promises';
import { MissingPrivilege } from '../../core/errors.ts';

/** CAP_NET_ADMIN of include/uapi/linux/capability.h. */
const netAdmin = 1n << 12n;

/** Throws MissingPrivilege when this process must not configure the network; root in a container may lack it too. */
export async function checkPrivilege(): Promise<void> {
  const status = await readFile('/proc/self/status', 'utf8').catch(() => null);
  if (status === null ? process.geteuid?.() === 0 : mayAdminister(status)) return;
  throw new MissingPrivilege('cpn', 'run it with sudo, or give the container or unit NET_ADMIN');
}

/** Tells from /proc/self/status (proc_pid_status(5)) whether CAP_NET_ADMIN is among the effective capabilities. */
export function mayAdminister(status: string): boolean {
  const [, effective] = /^CapEff:\s*([0-9a-f]+)$/m.exec(status) ?? [];
  return effective !== undefined && (BigInt(`0x${effective}`) & netAdmin) !== 0n;
}
