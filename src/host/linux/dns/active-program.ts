import { CpnError } from '../../../core/errors/index.ts';
import type { LinuxProgram } from '../../../core/host-state/actual.ts';
import type { Run } from '../../process/run.ts';
import { readIfThere } from '../underlay.ts';

/** In the order of preference. NetworkManager counts only if it runs a dnsmasq. */
const programs: readonly LinuxProgram[] = ['NetworkManager', 'dnsmasq', 'unbound'];

/**
 * Finds the program whose unit may be the resolver of this host; null without one. The sandbox of
 * the daemon hides the processes of other users, and a process may state any command line.
 */
export async function findActiveProgram(run: Run, read = readIfThere): Promise<LinuxProgram | null> {
  const active = await listActive(run, programs, read);
  return programs.find((each) => active.has(each)) ?? null;
}

/** True if the program runs, whether it is the resolver or not. */
export async function isActive(run: Run, program: LinuxProgram): Promise<boolean> {
  return (await listActive(run, [program], readIfThere)).has(program);
}

async function listActive(
  run: Run,
  wanted: readonly LinuxProgram[],
  read: (path: string) => string,
): Promise<ReadonlySet<LinuxProgram>> {
  const units = wanted.map((program) => `${program}.service`);
  const args = ['show', '--property=Id', '--property=ActiveState', ...units];
  const text = await run('systemctl', args).catch((error) => {
    if (error instanceof CpnError) return '';
    throw error;
  });
  const running = text
    .split('\n\n')
    .filter((block) => /^ActiveState=(active|activating|reloading)$/m.test(block))
    .map((block) => /^Id=(.+)\.service$/m.exec(block)?.[1]);
  const hasDnsmasq = () => read('/run/NetworkManager/dnsmasq.pid') !== '';
  return new Set(wanted.filter((each) => running.includes(each) && (each !== 'NetworkManager' || hasDnsmasq())));
}

/** The command line that Debian's unit gives to dnsmasq. */
export function dnsmasqArgs(read: (path: string) => string): string[] {
  const text = read('/etc/default/dnsmasq');
  const lastOf = (name: string) =>
    [...text.matchAll(new RegExp(`^${name}=(["']?)(.*?)\\1\\s*$`, 'gm'))].at(-1)?.[2]?.trim() ?? '';
  const [folder] = lastOf('CONFIG_DIR').split(/\s/);
  const options = lastOf('DNSMASQ_OPTS')
    .split(/\s+/)
    .filter((word) => word !== '');
  return [...(folder ? ['-7', folder] : []), ...options];
}
