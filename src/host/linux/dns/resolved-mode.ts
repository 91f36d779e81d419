import { existsSync } from 'node:fs';
import type { ResolvedMode } from '../../../core/doctor/check-resolvers.ts';
import { CpnError } from '../../../core/errors/index.ts';
import type { Run } from '../../process/run.ts';
import { readIfThere } from '../underlay.ts';
import { isElsewhere, readManager } from './resolved.ts';
import { parseResolvers } from './settings.ts';
import { resolverFolder } from './watch-resolver.ts';

/** Reads how programs of this host resolve names. Null if systemd-resolved does not run here. */
export async function readResolvedMode(
  run: Run,
  read: (path: string) => string = readIfThere,
  folder = resolverFolder,
): Promise<ResolvedMode | null> {
  // Its folder stays after it ends.
  if (!existsSync(folder)) return null;
  const manager = await readManager(run).catch((error) => {
    if (error instanceof CpnError) return null;
    throw error;
  });
  if (manager === null || (await isElsewhere(manager, read))) return null;
  const { ResolvConfMode: mode, DNSStubListener: listener } = manager;
  return {
    mode: typeof mode === 'string' ? mode : null,
    hasStub: listener !== 'no',
    nameservers: parseResolvers(read('/etc/resolv.conf')),
    sources: parseSources(read('/etc/nsswitch.conf')),
  };
}

/** The sources of `hosts` (nsswitch.conf(5)), without actions in brackets. */
function parseSources(text: string): string[] {
  const [, words = ''] = /^hosts:([^#\n]*)/m.exec(text) ?? [];
  return words
    .replace(/\[[^\]]*\]/g, ' ')
    .split(/\s+/)
    .filter((word) => word !== '');
}
