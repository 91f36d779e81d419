import { accessSync, constants, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { CommandFailed, InvalidValue } from '../../core/errors/index.ts';
import { allForwardingKey, forwardingKey } from '../../core/host-state/sysctl-keys.ts';

/** Reads keys under /proc/sys. Leaves out keys that the kernel lacks. @throws CommandFailed */
export async function readSysctls(keys: readonly string[]): Promise<Record<string, string>> {
  const values = keys.map((key) => [key, readOrNull(pathOf(key))] as const);
  return Object.fromEntries(values.filter((entry): entry is [string, string] => entry[1] !== null));
}

/** True if no key can be written. In most containers, /proc/sys is read-only. */
export function areSysctlsSealed(): boolean {
  try {
    accessSync(pathOf(allForwardingKey), constants.W_OK);
    return false;
  } catch {
    return true;
  }
}

/** Also succeeds on a read-only /proc/sys if the value is there. @throws CommandFailed */
export async function writeSysctl(key: string, value: string): Promise<void> {
  const path = pathOf(key);
  if (readOrNull(path) === value) return;
  try {
    await writeFile(path, value, { flag: 'r+' });
  } catch (error) {
    throw new CommandFailed(`setting ${key} to ${value}`, null, (error as Error).message);
  }
}

/** New interfaces forward by the host's default. If /proc/sys is sealed, packet rules restrict. */
export async function disableForwarding(link: string): Promise<void> {
  await writeSysctl(forwardingKey(link), '0').catch(() => undefined);
}

/**
 * Keeps the secondary addresses of an interface when its primary address is removed
 * (`promote_secondaries`, ip-sysctl.rst). If /proc/sys is read-only, the next pass adds them again.
 */
export async function promoteSecondaries(link: string): Promise<void> {
  await writeFile(`/proc/sys/net/ipv4/conf/${link}/promote_secondaries`, '1', { flag: 'r+' }).catch(() => undefined);
}

/** Only network keys: no path leaves /proc/sys. A slash is an interface name's dot (sysctl(8)). */
function pathOf(key: string): string {
  if (!/^net(\.[a-zA-Z0-9_][a-zA-Z0-9_/-]*)+$/.test(key)) {
    throw new InvalidValue('sysctl', key, 'is not a sysctl of the network', 'write it like net.ipv4.ip_forward');
  }
  return `/proc/sys/${key.replaceAll(/[./]/g, (each) => (each === '.' ? '/' : '.'))}`;
}

function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trimEnd();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new CommandFailed(`reading ${path}`, null, (error as Error).message);
  }
}
