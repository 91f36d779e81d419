import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Actual, Link } from '../../core/host-state/actual.ts';
import { findMark, readDropIns } from '../../core/names/drop-in.ts';
import { namesPort } from '../../core/names/zone.ts';
import { answersQuery } from '../probes.ts';

/** The folder of resolver(5) on macOS, which reads changes at once. */
export const macResolverFolder = '/etc/resolver';

/** Milliseconds for the daemon's server of names, which is on this host. */
const deadlineMs = 300;

/** Reads the files for single domains: ours, and the domains of others. */
export async function readMacResolver(
  folder: string,
  name: string,
  link: Link | null,
): Promise<Required<Pick<Actual, 'dns' | 'dnsFiles'>>> {
  const names = await readdir(folder).catch(() => []);
  const files = await Promise.all(
    names
      .filter((each) => !each.startsWith('.'))
      .map(async (domain) => {
        const text = await readFile(join(folder, domain), 'latin1').catch(() => '');
        return { domain: domain.toLowerCase(), path: join(folder, domain), text, mark: findMark(text) };
      }),
  );
  const own = files.filter(({ mark }) => mark === name);
  const others = files.filter(({ mark }) => mark !== name).map(({ domain, mark }) => ({ domain, link: mark }));
  const served = await Promise.all(
    (link?.addresses ?? []).map(({ address }) => answersQuery(address, deadlineMs, namesPort)),
  );
  const dnsFiles = Object.fromEntries(own.map(({ path, text }) => [path, text]));
  const isServing = served.includes(true);
  return {
    dns: { program: 'macOS', own: readDropIns(dnsFiles), isRecent: false, folder, trouble: null, others, isServing },
    dnsFiles,
  };
}
