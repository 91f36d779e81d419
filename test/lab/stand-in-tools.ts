import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Host } from './host.ts';

/** Lets cpn, which searches its tools in fixed folders, find those in the host's `binDir`. After a reboot the host needs it again. */
export async function exposeTools(host: Host): Promise<void> {
  await mkdir(host.binDir, { recursive: true });
  const folder = '/usr/local/sbin';
  await host.exec(['mount', '-t', 'overlay', '-o', `lowerdir=${host.binDir}:${folder}`, 'overlay', folder]);
}

/** Adds an executable script to the host's `binDir`. */
export async function addTool(host: Host, name: string, text: string): Promise<void> {
  await mkdir(host.binDir, { recursive: true });
  await writeFile(join(host.binDir, name), text, { mode: 0o755 });
}
