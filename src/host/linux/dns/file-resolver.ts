import { accessSync, constants, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { FileResolver, LinuxProgram, OtherDomain } from '../../../core/host-state/actual.ts';
import { dropInFolders, findMark, nameDropIn, readDropIns } from '../../../core/names/drop-in.ts';
import { type Address, tryParseAddress } from '../../../core/net/cidr.ts';
import { isLoopback } from '../../../core/net/endpoint.ts';
import type { Run } from '../../process/run.ts';
import { dnsmasqArgs, findActiveProgram } from './active-program.ts';
import { findBoundAddresses, findDnsmasqDomains, findDnsmasqFolders, findDomainsIn } from './dnsmasq.ts';
import { findLocalResolver, readOfRoot, rootsFiles } from './resolvers.ts';
import type { SettingsFiles } from './settings.ts';
import { findUnboundDomains, findUnboundFolders, findZonesIn } from './unbound.ts';

/** How the settings of a program are read. */
interface Reader {
  /** The command line that its unit gives it. */
  readonly argv: (files: SettingsFiles) => readonly string[];
  /** The folders that it reads a file of this name from. */
  readonly findFolders: (argv: readonly string[], files: SettingsFiles, name: string) => readonly string[];
  /** The addresses without which it does not start. */
  readonly findBound: (argv: readonly string[], files: SettingsFiles) => readonly string[];
  /** The domains with settings of their own. */
  readonly findDomains: (argv: readonly string[], files: SettingsFiles) => readonly string[];
  /** Those in the text of one file. */
  readonly findDomainsIn: (text: string) => readonly string[];
  /** What to do if it does not read one of our folders. */
  readonly remedy: string;
}

const dnsmasq = {
  ...{ findFolders: findDnsmasqFolders, findBound: findBoundAddresses },
  ...{ findDomains: findDnsmasqDomains, findDomainsIn },
};
const [networkManagerFolder] = dropInFolders.NetworkManager;

const readers: Readonly<Record<LinuxProgram, Reader>> = {
  dnsmasq: {
    ...dnsmasq,
    argv: ({ read }) => ['dnsmasq', ...dnsmasqArgs(read)],
    remedy: 'add "conf-dir=/etc/dnsmasq.d/,*.conf" to /etc/dnsmasq.conf',
  },
  NetworkManager: {
    ...dnsmasq,
    argv: () => ['dnsmasq', '--conf-file=/dev/null', `--conf-dir=${networkManagerFolder}`],
    remedy: `it needs ${networkManagerFolder}`,
  },
  unbound: {
    ...{ findFolders: findUnboundFolders, findBound: () => [] },
    ...{ findDomains: findUnboundDomains, findDomainsIn: findZonesIn },
    argv: () => ['unbound'],
    remedy: 'add include-toplevel: "/etc/unbound/unbound.conf.d/*.conf" to /etc/unbound/unbound.conf',
  },
};

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
  const program = mayBe ? await findActiveProgram(run) : null;
  if (program === null) return { resolver: null, dnsFiles };
  const reader = readers[program];
  const argv = reader.argv(rootsFiles);
  const folder =
    reader.findFolders(argv, rootsFiles, name).find((each) => dropInFolders[program].includes(each)) ?? null;
  const missing = reader.findBound(argv, rootsFiles).find((each) => isMissing(each, own));
  const settled = reader.findDomains(argv, rootsFiles).map((domain): OtherDomain => ({ domain, link: null }));
  const others = [...settled, ...(folder === null ? [] : findOfNetworks(folder, link, reader))];
  const read = Object.entries(dnsFiles).filter(([path]) => dirname(path) === folder);
  const resolver = {
    ...{ program, folder: folder ?? '', others },
    own: readDropIns(Object.fromEntries(read)),
    isRecent: read.some(([path]) => isChangedWithin(path, secondsBetweenChanges)),
    trouble:
      missing === undefined
        ? findTrouble(folder, name, link, `its ${program} reads no folder of cpn; ${reader.remedy}`)
        : `its ${program} could not start again: no interface has its listen-address ${missing}`,
  };
  return { resolver, dnsFiles };
}

/** Only for addresses that can be compared: another word counts as present. */
function isMissing(text: string, own: readonly Address[]): boolean {
  const address = tryParseAddress(text);
  return address !== null && !isLoopback(address) && !own.includes(address);
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
