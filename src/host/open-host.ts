import { join } from 'node:path';
import { InvalidValue } from '../core/errors.ts';
import type { Host } from './host.ts';
import type { Inspector } from './inspector.ts';
import type { Portable } from './wg-quick/observe.ts';

/** What keeps a host: all the tools of Linux, wg-quick alone, or the services of WireGuard for Windows. */
export const drivers = ['linux', 'wg-quick', 'windows'] as const;
export type Driver = (typeof drivers)[number];

/** Where the three folders of a host are unless told otherwise. */
export interface UsualFolders {
  readonly config: string;
  readonly state: string;
  readonly runtime: string;
}

/** What is said to whoever uses a driver that was never tried where it belongs; null for the others. */
export function describeUntested(driver: Driver): string | null {
  return driver === 'windows'
    ? 'cpn was never tested on Windows: look at what it does there, and keep another way to this host'
    : null;
}

/**
 * The driver that somebody asked for by name, or the platform's own: wg-quick where there is one.
 *
 * @throws InvalidValue for a name that is none
 */
export function chooseDriver(asked: string | undefined, platform: NodeJS.Platform = process.platform): Driver {
  if (asked === undefined) return platform === 'linux' ? 'linux' : platform === 'win32' ? 'windows' : 'wg-quick';
  const driver = drivers.find((each) => each === asked);
  if (driver !== undefined) return driver;
  throw new InvalidValue('CPN_HOST_DRIVER', asked, `is none of ${drivers.join(', ')}`);
}

/** The folders that a platform has for such things: macOS and the BSDs empty /var/run when they start, and have no /run. */
export function findUsualFolders(platform: NodeJS.Platform = process.platform): UsualFolders {
  if (platform === 'win32') {
    // Nobody is to see private keys, and modes are not heeded there: this folder WireGuard itself gives to administrators alone.
    const folder = 'C:\\Program Files\\WireGuard\\Data\\cpn';
    return { config: `${folder}\\config`, state: `${folder}\\state`, runtime: `${folder}\\run` };
  }
  const runtime = platform === 'linux' ? '/run/cpn' : '/var/run/cpn';
  return { config: '/etc/wireguard', state: '/var/lib/cpn', runtime };
}

/** @param runtime the folder for what does not outlive a restart of this host */
export async function openHost(driver: Driver, runtime: string): Promise<Host> {
  if (driver === 'linux') return (await import('./linux/linux-host.ts')).linuxHost();
  const { portableHost } = await import('./wg-quick/portable-host.ts');
  return portableHost(await openPortable(driver, runtime));
}

export async function openInspector(driver: Driver, runtime: string): Promise<Inspector> {
  if (driver === 'linux') return (await import('./linux/linux-inspector.ts')).linuxInspector();
  const { portableInspector } = await import('./wg-quick/portable-inspector.ts');
  return portableInspector(await openPortable(driver, runtime));
}

async function openPortable(driver: 'wg-quick' | 'windows', runtime: string): Promise<Portable> {
  const [{ run }, { tunnelFiles }] = await Promise.all([import('./run.ts'), import('./wg-quick/tunnel-files.ts')]);
  const folder = join(runtime, 'tunnels');
  const files = tunnelFiles(folder);
  if (driver === 'windows') {
    const { tunnelServiceManager } = await import('./windows/tunnel-service.ts');
    return { run, files, manager: tunnelServiceManager(run, runtime) };
  }
  const { wgQuickManager } = await import('./wg-quick/tunnel-manager.ts');
  return { run, files, manager: wgQuickManager(run, process.platform) };
}
