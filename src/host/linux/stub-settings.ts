import { basename, dirname, join } from 'node:path';
import type { Address } from '../../core/net/cidr.ts';
import { readAddress } from '../read-address.ts';

/** A server that a stub passes queries on to. */
export interface Forwarder {
  readonly address: Address;
  readonly port: number;
}

/** Reads the files that settings of root name. */
export interface SettingsFiles {
  /** The text; empty where there is no such regular file of root. */
  readonly read: (path: string) => string;
  /** The names in a folder; empty where there is none. */
  readonly list: (folder: string) => readonly string[];
}

/** What the settings of a stub say. */
export interface StubSettings {
  readonly forwarders: readonly Forwarder[];
  /** True where they name all servers that it queries. */
  readonly isComplete: boolean;
}

/** How many files one stub may have. */
const mostFiles = 200;

/** Reads the settings of the programs whose settings are known: dnsmasq(8) and unbound.conf(5). Null for others. */
export function readStubSettings(program: string, argv: readonly string[], files: SettingsFiles): StubSettings | null {
  if (program === 'dnsmasq') return readDnsmasq(argv, files);
  return program === 'unbound' ? readUnbound(argv, files) : null;
}

/**
 * The settings that the stubs of Debian and Fedora have by default, where the program that listens cannot be seen: a server too many
 * stays outside the tunnel, which one too few would not.
 */
export function readUsualSettings(files: SettingsFiles): StubSettings {
  const dnsmasq = [
    'dnsmasq',
    '-r',
    '/run/dnsmasq/resolv.conf',
    '-7',
    '/etc/dnsmasq.d',
    '-7',
    '/etc/NetworkManager/dnsmasq.d',
  ];
  const forwarders = [
    ...readDnsmasq(dnsmasq, files).forwarders,
    ...readNameservers(files.read(networkManagerFile)),
    ...readUnbound([], files).forwarders,
  ];
  return { forwarders, isComplete: false };
}

/** The options of dnsmasq that matter, by the letters that stand for them on the command line. */
const letters: Readonly<Record<string, string>> = {
  S: 'server',
  r: 'resolv-file',
  C: 'conf-file',
  7: 'conf-dir',
  R: 'no-resolv',
  1: 'enable-dbus',
};

const withoutValue = new Set(['no-resolv', 'enable-dbus']);

/** The servers of NetworkManager, which tells them to its dnsmasq over D-Bus. */
const networkManagerFile = '/run/NetworkManager/no-stub-resolv.conf';

function readDnsmasq(argv: readonly string[], files: SettingsFiles): StubSettings {
  const given = readOptions(argv.slice(1));
  const isElsewhere = given.some(([name]) => name === 'conf-file');
  const settings = [...given, ...(isElsewhere ? [] : ([['conf-file', '/etc/dnsmasq.conf']] as const))];
  const found: (readonly [name: string, value: string])[] = [];
  const seen = new Set<string>();
  for (let next = settings.shift(); next !== undefined; next = settings.shift()) {
    const [name, value] = next;
    found.push(next);
    const paths = name === 'conf-file' ? [value] : name === 'conf-dir' ? listFolder(value, files) : [];
    for (const path of paths) {
      if (seen.has(path) || seen.size >= mostFiles) continue;
      seen.add(path);
      settings.push(...files.read(path).split('\n').flatMap(readSetting));
    }
  }
  const valuesOf = (wanted: string) => found.flatMap(([name, value]) => (name === wanted ? [value] : []));
  const usesBus = found.some(([name]) => name === 'enable-dbus');
  const published = [
    ...(found.some(([name]) => name === 'no-resolv') ? [] : valuesOf('resolv-file')),
    ...(usesBus && argv.some((word) => word.includes('NetworkManager')) ? [networkManagerFile] : []),
  ].map(files.read);
  const forwarders = [
    ...valuesOf('server').flatMap((value) => readForwarder(value.replace(/^.*\//, '').replace(/@.*$/, ''), '#')),
    ...published.flatMap(readNameservers),
  ];
  return { forwarders, isComplete: !usesBus || published.some((text) => text !== '') };
}

function readOptions(words: readonly string[]): [string, string][] {
  return words.flatMap((word, at): [string, string][] => {
    const [, name, , inline] = /^--([a-z0-9-]+)(=(.*))?$/s.exec(word) ?? [];
    if (name !== undefined) return [[name, inline ?? words[at + 1] ?? '']];
    const [, letter = '', rest = ''] = /^-([A-Za-z0-9])(.*)$/s.exec(word) ?? [];
    const long = letters[letter];
    if (long === undefined) return [];
    return [[long, withoutValue.has(long) ? '' : rest === '' ? (words[at + 1] ?? '') : rest]];
  });
}

/** A line of dnsmasq.conf: `server=192.0.2.53 # comment`. */
function readSetting(line: string): [string, string][] {
  const [, name, , value = ''] = /^\s*([a-z0-9-]+)\s*(=\s*([^\s#]+(#\d+)?)?)?/.exec(line) ?? [];
  return name === undefined ? [] : [[name, value]];
}

/** `/etc/dnsmasq.d,.bak` leaves out names that end so; `/etc/dnsmasq.d,*.conf` takes only names that do. */
function listFolder(value: string, { list }: SettingsFiles): string[] {
  const [folder = '', ...ends] = value.split(',');
  const taken = ends.filter((end) => end.startsWith('*')).map((end) => end.slice(1));
  const left = ends.filter((end) => !end.startsWith('*'));
  const isTaken = (name: string) =>
    !/^[.#]|~$/.test(name) &&
    (taken.length === 0 || taken.some((end) => name.endsWith(end))) &&
    !left.some((end) => name.endsWith(end));
  return list(folder)
    .filter(isTaken)
    .map((name) => join(folder, name));
}

function readUnbound(argv: readonly string[], files: SettingsFiles): StubSettings {
  const at = argv.indexOf('-c');
  const main = at < 0 ? '/etc/unbound/unbound.conf' : (argv[at + 1] ?? '');
  const pending = [main];
  const seen = new Set<string>();
  const forwarders: Forwarder[] = [];
  for (let path = pending.shift(); path !== undefined; path = pending.shift()) {
    if (seen.has(path) || seen.size >= mostFiles) continue;
    seen.add(path);
    for (const line of files.read(path).split('\n')) {
      const [, name, value = ''] = /^\s*([a-z-]+):\s*"?([^\s"]+)"?/.exec(line) ?? [];
      if (name === 'forward-addr' || name === 'stub-addr')
        forwarders.push(...readForwarder(value.replace(/#.*$/, ''), '@'));
      if (name === 'include' || name === 'include-toplevel') pending.push(...expand(value, files));
    }
  }
  return { forwarders, isComplete: files.read(main) !== '' };
}

/** A path whose last part may have one `*`. */
function expand(path: string, { list }: SettingsFiles): string[] {
  const [before, after] = basename(path).split('*');
  if (after === undefined || before === undefined) return [path];
  const names = list(dirname(path)).filter((name) => name.startsWith(before) && name.endsWith(after));
  return names.map((name) => join(dirname(path), name));
}

function readForwarder(text: string, mark: '#' | '@'): Forwarder[] {
  const [host = '', port = '53'] = text.split(mark);
  const address = readAddress(host);
  return address === null || !/^\d{1,5}$/.test(port) ? [] : [{ address, port: Number(port) }];
}

function readNameservers(text: string): Forwarder[] {
  return parseResolvers(text).map((address) => ({ address, port: 53 }));
}

/** MAXNS of glibc: it ignores further ones. A DHCP server chooses them, and each address would stay outside the tunnel. */
const mostNameservers = 3;

/** The servers of a resolv.conf(5), without those that are no addresses: the first three. */
export function parseResolvers(text: string): Address[] {
  const names = text.split('\n').map((line) => /^nameserver\s+(\S+)/.exec(line)?.[1] ?? '');
  return [...new Set(names.flatMap((name) => readAddress(name) ?? []))].slice(0, mostNameservers);
}
