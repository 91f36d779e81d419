import { join } from 'node:path';
import { InvalidValue } from '../core/errors/index.ts';
import type { Host, Inspector } from './host.ts';
import type { PortableContext } from './wg-quick/observe.ts';

/** Configures a host with the tools of Linux, wg-quick alone, or WireGuard for Windows. */
export const drivers = ['linux', 'wg-quick', 'windows'] as const;
export type Driver = (typeof drivers)[number];

/** The folders of a host, unless an option or variable overrides them. */
export interface DefaultFolders {
  readonly config: string;
  readonly state: string;
  readonly runtime: string;
}

/** A warning for a driver that was never tested on its platform. Null for other drivers. */
export function untestedWarning(driver: Driver): string | null {
  return driver === 'windows'
    ? 'cpn was never tested on Windows: check what it changes, and keep another way to reach this host'
    : null;
}

/** The driver of that name, or the platform's default. @throws InvalidValue for an unknown name */
export function chooseDriver(name: string | undefined, platform: NodeJS.Platform = process.platform): Driver {
  if (name === undefined) return platform === 'linux' ? 'linux' : platform === 'win32' ? 'windows' : 'wg-quick';
  const driver = drivers.find((each) => each === name);
  if (driver !== undefined) return driver;
  throw new InvalidValue('CPN_HOST_DRIVER', name, `must be one of ${drivers.join(', ')}`);
}

/** macOS and the BSDs have no /run, but empty /var/run at boot. */
export function defaultFolders(platform: NodeJS.Platform = process.platform): DefaultFolders {
  if (platform === 'win32') {
    // WireGuard restricts this folder to administrators. File modes protect no keys on Windows.
    const folder = 'C:\\Program Files\\WireGuard\\Data\\cpn';
    return { config: `${folder}\\config`, state: `${folder}\\state`, runtime: `${folder}\\run` };
  }
  const runtime = platform === 'linux' ? '/run/cpn' : '/var/run/cpn';
  return { config: '/etc/wireguard', state: '/var/lib/cpn', runtime };
}

/** @param runtime the folder for files that last until the next boot */
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

async function openPortable(driver: 'wg-quick' | 'windows', runtime: string): Promise<PortableContext> {
  const [{ run }, { tunnelFiles }] = await Promise.all([
    import('./process/run.ts'),
    import('./wg-quick/tunnel-files.ts'),
  ]);
  const folder = join(runtime, 'tunnels');
  const files = tunnelFiles(folder);
  if (driver === 'windows') {
    const { tunnelServiceManager } = await import('./windows/tunnel-service.ts');
    return { run, files, manager: tunnelServiceManager(run, runtime) };
  }
  const [{ wgQuickManager }, { macResolverFolder }] = await Promise.all([
    import('./wg-quick/tunnel-manager.ts'),
    import('./wg-quick/mac-resolver.ts'),
  ]);
  const resolver = process.platform === 'darwin' && { resolverFolder: macResolverFolder };
  return { run, files, manager: wgQuickManager(run, process.platform), ...resolver };
}
