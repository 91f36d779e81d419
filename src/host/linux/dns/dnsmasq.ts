import { join, normalize } from 'node:path';
import { findReverseZones } from '../../../core/names/zone.ts';
import { type Prefix, parsePrefix } from '../../../core/net/cidr.ts';
import {
  mostFiles,
  readForwarder,
  readNameservers,
  type SettingsFiles,
  type StubSettings,
  tooMany,
} from './settings.ts';

type DnsmasqSetting = readonly [name: string, value: string];

/** All options. `isWhole` is false if a file or the output of a script is missing. */
interface DnsmasqSettings {
  readonly settings: readonly DnsmasqSetting[];
  readonly isWhole: boolean;
  /** Why a file may be missing in `files`; null if none is. */
  readonly unread: string | null;
  /** Without a `servers-file`: an error in it is only logged, and does not prevent a start. */
  readonly files: readonly string[];
}

/** The relevant options, by their letters on the command line. */
const letters: Readonly<Record<string, string>> = {
  S: 'server',
  r: 'resolv-file',
  C: 'conf-file',
  7: 'conf-dir',
  R: 'no-resolv',
  1: 'enable-dbus',
};

/** The letters without a value (OPTSTRING in option.c of dnsmasq). One word may contain several. */
const flags: ReadonlySet<string> = new Set('951yZDNLERKzowefnbvhdkq');

/** The servers that NetworkManager configures in its dnsmasq over D-Bus. */
export const networkManagerFile = '/run/NetworkManager/no-stub-resolv.conf';

const usualFile = '/etc/dnsmasq.conf';

/** Reads the settings of dnsmasq(8) from its command line and its files. */
export function readDnsmasq(argv: readonly string[], files: SettingsFiles): StubSettings {
  const { settings, isWhole } = readDnsmasqSettings(argv, files);
  const valuesOf = (wanted: string) => settings.flatMap(([name, value]) => (name === wanted ? [value] : []));
  const usesBus = settings.some(([name]) => name === 'enable-dbus');
  const published = [
    ...(settings.some(([name]) => name === 'no-resolv') ? [] : valuesOf('resolv-file')),
    ...(usesBus && argv.some((word) => word.includes('NetworkManager')) ? [networkManagerFile] : []),
  ].map(files.read);
  const servers = [
    ...[...valuesOf('server'), ...valuesOf('local')].map((value) => value.replace(/^.*\//s, '')),
    ...valuesOf('rev-server').map((value) => value.replace(/^[^,]*,?/, '')),
  ]
    .map((value) => value.replace(/@.*$/s, ''))
    // dnsmasq answers queries for a domain without a server. `#` stands for the default servers.
    .filter((value) => value !== '' && value !== '#');
  const named = servers.map((value) => readForwarder(value, '#'));
  const isBusKnown = !usesBus || published.some((text) => text !== '');
  return {
    forwarders: [...named.filter((each) => each !== null), ...published.flatMap(readNameservers)],
    isComplete: isWhole && isBusKnown && !named.includes(null),
  };
}

/** The folders of settings that a file of this name belongs to. */
export function findDnsmasqFolders({ settings }: DnsmasqSettings, name: string): string[] {
  return settings.flatMap(([option, value]) => {
    const [folder = ''] = value.split(',');
    return option === 'conf-dir' && folder.startsWith('/') && isTakenFrom(value)(name)
      ? [normalize(`${folder}/.`)]
      : [];
  });
}

/** The domains that have settings of their own: `server=/corp.example/192.0.2.53`. */
export function findDnsmasqDomains({ settings }: DnsmasqSettings): string[] {
  return settings.flatMap(listDomains);
}

export function findDomainsIn(text: string): string[] {
  return text.split('\n').flatMap(readLine).flatMap(listDomains);
}

function listDomains([name, value]: DnsmasqSetting): string[] {
  const [first = '', ...more] = value.split(',');
  // With `local`, it answers the names of the domain itself.
  if (name === 'domain') return more.includes('local') ? [first.toLowerCase()] : [];
  if (name === 'rev-server') return findReverseZones(readSubnet(first), []);
  if (!['server', 'local', 'address'].includes(name)) return [];
  return value
    .split('/')
    .slice(1, -1)
    .map((domain) => domain.toLowerCase());
}

/** Without a length, it is 24. */
function readSubnet(text: string): Prefix {
  try {
    return parsePrefix(text.includes('/') ? text : `${text}/24`);
  } catch {
    return parsePrefix('0.0.0.0/0');
  }
}

/** Collects the options of the command line and of all files. */
export function readDnsmasqSettings(argv: readonly string[], files: SettingsFiles): DnsmasqSettings {
  const settings = readOptions(argv.slice(1));
  if (!settings.some(([name]) => name === 'conf-file')) settings.push(['conf-file', usualFile]);
  const visited = new Set<string>();
  const strict: string[] = [];
  let isWhole = true;
  let unread: string | null = null;
  // A blocklist has several 100,000 lines. The loop also visits the settings that it appends.
  for (const [name, value] of settings) {
    if (name === 'conf-script') [isWhole, unread] = [false, 'it has a conf-script'];
    for (const path of listFiles([name, value], files)) {
      if (visited.has(path)) continue;
      if (visited.size >= mostFiles) return { settings, isWhole: false, unread: tooMany, files: strict };
      visited.add(path);
      if (name !== 'servers-file') strict.push(path);
      const text = files.read(path);
      if (text === '' && name !== 'conf-dir' && ![usualFile, '/dev/null'].includes(value)) isWhole = false;
      for (const line of text.split('\n')) settings.push(...readLine(line));
    }
  }
  return { settings, isWhole, unread, files: strict };
}

function listFiles([name, value]: DnsmasqSetting, files: SettingsFiles): string[] {
  if (name === 'conf-dir') return listFolder(value, files);
  return name === 'conf-file' || name === 'servers-file' ? [value] : [];
}

function readOptions(words: readonly string[]): DnsmasqSetting[] {
  return words.flatMap((word, at): DnsmasqSetting[] => {
    const following = words[at + 1] ?? '';
    const [, name, , inline] = /^--([a-z0-9-]+)(=(.*))?$/s.exec(word) ?? [];
    if (name !== undefined) return [[name, inline ?? following]];
    if (!/^-[^-]/.test(word)) return [];
    const begin = [...word].findIndex((letter, index) => index > 0 && !flags.has(letter));
    const grouped = word.slice(1, begin < 0 ? undefined : begin);
    const single = [...grouped].flatMap((letter): DnsmasqSetting[] => nameOf(letter, ''));
    return begin < 0 ? single : [...single, ...nameOf(word[begin] ?? '', word.slice(begin + 1) || following)];
  });
}

function nameOf(letter: string, value: string): DnsmasqSetting[] {
  const name = letters[letter];
  return name === undefined ? [] : [[name, value]];
}

/** Parses a line such as `server="192.0.2.53" # comment`. Within quotes, `#` starts no comment. */
function readLine(line: string): DnsmasqSetting[] {
  const text = line.replace(/"([^"]*)"|(?:^|\s)#.*$/g, (_, quoted: string | undefined) => quoted ?? '');
  const [, name, value = ''] = /^\s*([a-z0-9-]+)\s*(?:=\s*(.*?))?\s*$/.exec(text) ?? [];
  return name === undefined ? [] : [[name, value]];
}

function listFolder(value: string, { list }: SettingsFiles): string[] {
  const [folder = ''] = value.split(',');
  return list(folder)
    .filter(isTakenFrom(value))
    .map((name) => join(folder, name));
}

/** `/etc/dnsmasq.d,.bak` skips names with that ending. `*.conf` instead reads only such names. */
function isTakenFrom(value: string): (name: string) => boolean {
  const [, ...ends] = value.split(',');
  const taken = ends.filter((end) => end.startsWith('*')).map((end) => end.slice(1));
  const left = ends.filter((end) => !end.startsWith('*'));
  return (name) =>
    !/^[.#]|~$/.test(name) &&
    (taken.length === 0 || taken.some((end) => name.endsWith(end))) &&
    !left.some((end) => name.endsWith(end));
}
