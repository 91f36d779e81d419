import { constants } from 'node:fs';
import { access, readFile, writeFile } from 'node:fs/promises';
import { CommandFailed, InvalidValue } from '../../core/errors.ts';
import { allForwardingKey, forwardingKey } from '../../core/link-sysctl.ts';

/** Reads keys under /proc/sys; a key that this kernel does not have is left out. */
export async function readSysctls(keys: readonly string[]): Promise<Record<string, string>> {
  const values = await Promise.all(keys.map(async (key) => [key, await readIfThere(pathOf(key))] as const));
  return Object.fromEntries(values.filter((entry): entry is [string, string] => entry[1] !== null));
}

/** True where no key can be written: a container usually has /proc/sys read-only. */
export async function areSysctlsSealed(): Promise<boolean> {
  return access(pathOf(allForwardingKey), constants.W_OK).then(
    () => false,
    () => true,
  );
}

/** Writes one key, as `sysctl -w` would; writes nothing where it has that value, as in a container all may be read-only. */
export async function writeSysctl(key: string, value: string): Promise<void> {
  const path = pathOf(key);
  if ((await readIfThere(path)) === value) return;
  try {
    await writeFile(path, value, { flag: 'r+' });
  } catch (error) {
    throw new CommandFailed(`setting ${key} to ${value}`, null, (error as Error).message);
  }
}

/**
 * Keeps a new interface, which is not up yet, from forwarding: it has what the host is set to by default. Where /proc/sys cannot be
 * written, the packet rules alone keep it in bounds.
 */
export async function closeForwarding(link: string): Promise<void> {
  await writeSysctl(forwardingKey(link), '0').catch(() => undefined);
}

/**
 * Lets the addresses of an interface outlive each other: by default the kernel drops, with an address, all that were
 * added after it in the same subnet (`promote_secondaries`, ip-sysctl.rst). Where /proc/sys cannot be written, the
 * next pass puts the address back.
 */
export async function promoteSecondaries(link: string): Promise<void> {
  await writeFile(`/proc/sys/net/ipv4/conf/${link}/promote_secondaries`, '1', { flag: 'r+' }).catch(() => undefined);
}

/**
 * Only keys of the network stack, and none that leads out of /proc/sys. As in sysctl(8), a slash stands for a dot in the name of
 * an interface.
 */
function pathOf(key: string): string {
  if (!/^net(\.[a-zA-Z0-9_][a-zA-Z0-9_/-]*)+$/.test(key)) {
    throw new InvalidValue('sysctl', key, 'is not a key of the network', 'write it like net.ipv4.ip_forward');
  }
  return `/proc/sys/${key.replaceAll(/[./]/g, (each) => (each === '.' ? '/' : '.'))}`;
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return (await readFile(path, 'utf8')).trimEnd();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new CommandFailed(`reading ${path}`, null, (error as Error).message);
  }
}
