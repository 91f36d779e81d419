import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Host } from './host.ts';

/** How many routes a host needs so that they are not read at once: 2 MiB of JSON. */
export const manyRoutes = 25_000;

/**
 * Gives a host routes of a routing daemon, as from a full table of the internet: 20.0.0.0/24, 20.0.1.0/24 and on.
 *
 * @param via the router; null for an interface of the host that needs none
 */
export async function loadRoutes(host: Host, count: number, via: string | null = null, table = 'main'): Promise<void> {
  const lines = Array.from({ length: count }, (_, index) => {
    const network = `${20 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}.0/24`;
    const hop = via === null ? `dev ${host.uplink.name}` : `via ${via}`;
    return `route replace ${network} ${hop} proto bgp table ${table}\n`;
  });
  const path = join(host.folder, `routes-${table}`);
  await writeFile(path, lines.join(''));
  await host.exec(['ip', '-batch', path], { timeoutMs: 1_200_000 });
  await rm(path);
}
