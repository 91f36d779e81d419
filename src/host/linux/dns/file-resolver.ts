import { accessSync, constants, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { FileResolver, LinuxProgram, OtherDomain } from '../../../core/host-state/actual.ts';
import { dropInFolders, findMark, nameDropIn, readDropIns } from '../../../core/names/drop-in.ts';
import type { Address } from '../../../core/net/cidr.ts';
import type { Run } from '../../process/run.ts';
import { type ActiveProgram, findActive, findActiveProgram, readDnsmasqArgs } from './active-program.ts';
import { findDnsmasqDomains, findDnsmasqFolders, findDomainsIn, readDnsmasqSettings } from './dnsmasq.ts';
import { findNewer, isFromFuture } from './fresh-settings.ts';
import { findLocalResolver, isOfOthers, readOfRoot, rootsFiles } from './resolvers.ts';
import { findUnboundFolders, findZonesIn, readUnboundSettings } from './unbound.ts';

/** How the settings of a program are read. */
interface Reader {
  /** Reads them once; null while no process of the program is there. */
  readonly read: (run: Run, name: string) => Promise<ReadSettings | null>;
  /** The domains in the text of one file. */
  readonly findDomainsIn: (text: string) => readonly string[];
  /** What to do if it does not read one of our folders. */
  readonly remedy: string;
  /** The command that restarts it. */
  readonly restart: string;
}

interface ReadSettings {
  /** The folders that it reads a file of this name from. */
  readonly folders: readonly string[];
  /** The domains with settings of their own. */
  readonly domains: readonly string[];
  readonly files: readonly string[];
  /** Why a file may be missing in `files`; null if none is. */
  readonly unread: string | null;
}

const [networkManagerFolder] = dropInFolders.NetworkManager;

const readers: Readonly<Record<LinuxProgram, Reader>> = {
  dnsmasq: {
    read: async (run, name) => {
      const args = await readDnsmasqArgs(run);
      return args && readDnsmasq(args, name);
    },
    findDomainsIn,
    remedy: 'add "conf-dir=/etc/dnsmasq.d/,*.conf" to /etc/dnsmasq.conf',
    restart: 'systemctl restart dnsmasq',
  },
  NetworkManager: {
    read: async (_, name) => readDnsmasq(['--conf-file=/dev/null', `--conf-dir=${networkManagerFolder}`], name),
    findDomainsIn,
    remedy: `it needs ${networkManagerFolder}`,
    restart: 'nmcli general reload dns-full',
  },
  unbound: {
    read: async (_, name) => {
      const settings = readUnboundSettings([], rootsFiles);
      const { domains, files, unread } = settings;
      return { folders: findUnboundFolders(settings, name), domains, files, unread };
    },
    findDomainsIn: findZonesIn,
    remedy: 'add include-toplevel: "/etc/unbound/unbound.conf.d/*.conf" to /etc/unbound/unbound.conf',
    restart: 'systemctl restart unbound',
  },
};

function readDnsmasq(args: readonly string[], name: string): ReadSettings {
  const settings = readDnsmasqSettings(['dnsmasq', ...args], rootsFiles);
  return {
    folders: findDnsmasqFolders(settings, name),
    domains: findDnsmasqDomains(settings),
    ...{ files: settings.files, unread: settings.unread },
  };
}

/** The files of a host that concern its resolver. */
export interface FoundFiles {
  readonly resolver: Omit<FileResolver, 'isServing'> | null;
  /** Our files for this network: text by path. */
  readonly dnsFiles: Readonly<Record<string, string>>;
}

/**
 * Finds the program that resolves names for this host, if it reads a folder of settings. Finds all
 * files of ours too, because an earlier resolver may have left one.
 *
 * @param own the addresses of this host
 */
export async function findFileResolver(run: Run, link: string, own: readonly Address[]): Promise<FoundFiles> {
  const name = nameDropIn(link);
  const paths = Object.values(dropInFolders).flatMap((folders) => folders.map((each) => join(each, name)));
  const texts = paths.map((path): [string, string] => [path, readOfRoot(path)]);
  const dnsFiles = Object.fromEntries(texts.filter(([, text]) => findMark(text) === link));
  const local = findLocalResolver(own);
  const mayBe = local === 'listening' || (local === 'silent' && Object.keys(dnsFiles).length > 0);
  const active = mayBe ? await findActiveProgram(run) : null;
  if (active === null) return { resolver: null, dnsFiles };
  const { program } = active;
  const reader = readers[program];
  const settings = await reader.read(run, name);
  if (settings === null) return { resolver: null, dnsFiles };
  const { folders, domains } = settings;
  const folder = folders.find((each) => dropInFolders[program].includes(each)) ?? null;
  const unstartable = describeUnstartable(active, settings);
  const settled = domains.map((domain): OtherDomain => ({ domain, link: null }));
  const others = [...settled, ...(folder === null ? [] : findOfNetworks(folder, link, reader))];
  const read = Object.entries(dnsFiles).filter(([path]) => dirname(path) === folder);
  const resolver = {
    ...{ program, folder: folder ?? '', others },
    own: readDropIns(Object.fromEntries(read)),
    isRecent: read.some(([path]) => isChangedWithin(path, secondsBetweenChanges)),
    trouble: findTrouble(folder, name, link, unstartable ?? `its ${program} reads no folder of cpn; ${reader.remedy}`),
    ...(unstartable !== null && { unstartable }),
  };
  return { resolver, dnsFiles };
}

/** Why a program that runs must not be restarted; null if it may be. */
export async function findUnstartable(run: Run, program: LinuxProgram): Promise<string | null> {
  const active = await findActive(run, program);
  const settings = active && (await readers[program].read(run, ''));
  return active && settings && describeUnstartable(active, settings);
}

function describeUnstartable({ program, startedAt, files }: ActiveProgram, settings: ReadSettings): string | null {
  const newer = findNewer([...files, ...settings.files], startedAt);
  const { restart } = readers[program];
  if (newer === null) {
    const foreign = settings.files.find(isOfOthers);
    const unread = foreign === undefined ? settings.unread : `${foreign} is not a file of root`;
    return (
      unread && `cpn restarts ${program} only if it reads all its settings: ${unread}; correct it, then ${restart}`
    );
  }
  return isFromFuture(newer)
    ? `the time of the last change of ${newer} is in the future; correct it: touch ${newer}; then ${restart}`
    : `${newer} changed after ${program} started; restart it: ${restart}`;
}

/** The time between two changes of a file. */
const secondsBetweenChanges = 60;

function isChangedWithin(path: string, seconds: number): boolean {
  const age = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  // The clock may have gone back.
  return age >= 0 && age < seconds * 1000;
}

/** The domains of our other networks. */
function findOfNetworks(folder: string, link: string, { findDomainsIn }: Reader): OtherDomain[] {
  const texts = rootsFiles
    .list(folder)
    .filter((name) => /^cpn-.+\.conf$/.test(name))
    .map((name) => readOfRoot(join(folder, name)));
  return texts.flatMap((text) => {
    const other = findMark(text);
    return other === null || other === link ? [] : findDomainsIn(text).map((domain) => ({ domain, link: other }));
  });
}

/** Why our file cannot be written; null if it can. */
function findTrouble(folder: string | null, name: string, link: string, noFolder: string): string | null {
  if (folder === null) return noFolder;
  const path = join(folder, name);
  try {
    const { uid, mode } = statSync(folder);
    if (uid !== 0 || (mode & 0o022) !== 0) return `other users than root may write to ${folder}`;
    accessSync(folder, constants.W_OK);
    const isThere = statSync(path, { throwIfNoEntry: false }) !== undefined;
    return isThere && findMark(readOfRoot(path)) !== link ? `${path} is not a file of cpn; rename it` : null;
  } catch (error) {
    return `cpn cannot write to ${folder}: ${(error as Error).message}`;
  }
}
