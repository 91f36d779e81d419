import type { DropInProgram, FileResolver, LinuxProgram, OwnDns } from '../host-state/actual.ts';
import { type DnsServer, type DomainServers, dnsPort } from './split-dns.ts';

/** The first line of our files for a resolver. */
const mark = (link: string) => `# cpn ${link} (written by cpn; edits are lost)`;

/** The interface of the network whose file it is; null for the file of another program. */
export function findMark(text: string): string | null {
  return /^# cpn (\S+) \(written by cpn; edits are lost\)$/m.exec(text.split('\n')[0] ?? '')?.[1] ?? null;
}

/** True for a file of ours in its place, unlike a copy of it, which others edit. */
export function isOwnFile(path: string, text: string): boolean {
  const link = findMark(text);
  const folders = Object.values(dropInFolders).flat();
  return link !== null && folders.some((folder) => path === `${folder}/${nameDropIn(link)}`);
}

/** The only folders in which we write files for a resolver. */
export const dropInFolders: Readonly<Record<LinuxProgram, readonly [string, ...string[]]>> = {
  dnsmasq: ['/etc/dnsmasq.d'],
  NetworkManager: ['/etc/NetworkManager/dnsmasq.d'],
  unbound: ['/etc/unbound/unbound.conf.d', '/etc/unbound/conf.d', '/etc/unbound/local.d'],
};

/** The program that reads a file of ours. */
export function readerOfFile(path: string): DropInProgram {
  const folder = path.slice(0, path.lastIndexOf('/'));
  const known = Object.entries(dropInFolders).find(([, folders]) => folders.includes(folder));
  return (known?.[0] as LinuxProgram | undefined) ?? 'macOS';
}

/** The name of a network's file. */
export function nameDropIn(link: string): string {
  return `cpn-${link}.conf`;
}

/**
 * Our files for a resolver, by path. Neither the domains, from parseDomain and from labels, nor the
 * addresses can contain a character that ends a value.
 */
export function renderDropIns(
  { program, folder }: Pick<FileResolver, 'program' | 'folder'>,
  link: string,
  dns: DomainServers,
): Readonly<Record<string, string>> {
  const render = (path: string, lines: readonly string[]) => [
    `${folder}/${path}`,
    [mark(link), ...lines, ''].join('\n'),
  ];
  if (program !== 'macOS') return Object.fromEntries([render(nameDropIn(link), renderers[program](dns))]);
  return Object.fromEntries(dns.domains.map((domain) => render(domain, renderMac(dns))));
}

/** The lines of a file without comments. */
export function settingsIn(text: string): string[] {
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

const renderers: Readonly<Record<LinuxProgram, (dns: DomainServers) => readonly string[]>> = {
  dnsmasq: renderDnsmasq,
  NetworkManager: renderDnsmasq,
  unbound: renderUnbound,
};

/** dnsmasq(8). With stop-dns-rebind, it would drop private addresses in answers. */
function renderDnsmasq({ servers, domains }: DomainServers): string[] {
  return domains.flatMap((domain) => [
    ...servers.map((server) => `server=/${domain}/${withPort(server, '#')}`),
    `rebind-domain-ok=/${domain}/`,
  ]);
}

/**
 * unbound.conf(5): without DNSSEC, with private addresses in answers, and instead of the local
 * zones that unbound answers itself, such as those of RFC 1918. A file may be included within
 * `server:`. unbound queries no loopback address by default.
 */
function renderUnbound({ servers, domains }: DomainServers): string[] {
  const zones = domains.flatMap((domain) => [
    'server:',
    `  domain-insecure: "${domain}."`,
    `  private-domain: "${domain}."`,
    `  local-zone: "${domain}." transparent`,
    'forward-zone:',
    `  name: "${domain}."`,
    ...servers.map((server) => `  forward-addr: ${withPort(server, '@')}`),
    'server:',
  ]);
  return ['server:', '  do-not-query-localhost: no', ...zones];
}

/** resolver(5) of macOS, in a file of the domain's name. All servers have one port. */
function renderMac({ servers }: DomainServers): string[] {
  const port = servers[0]?.port ?? dnsPort;
  const lines = servers.map(({ address }) => `nameserver ${address}`);
  return port === dnsPort ? lines : [...lines, `port ${port}`];
}

function withPort({ address, port }: DnsServer, mark: '#' | '@'): string {
  return port === dnsPort ? address : `${address}${mark}${port}`;
}

const serverLine =
  /^(?:server=\/[^/\n]+\/| {2}forward-addr: |nameserver )([\da-f.:]+)(?:[#@](\d+))?(?:\nport (\d+))?$/gm;
const domainLine = /^(?:server=\/| {2}name: ")([^/"\n]+?)\.?[/"]/gm;

/** What our files set, from {@link renderDropIns}; null without any. */
export function readDropIns(files: Readonly<Record<string, string>>): OwnDns | null {
  const found = Object.entries(files).map(([path, text]) => {
    const named = [...text.matchAll(domainLine)].map(([, domain = '']) => domain);
    // macOS has one file for each domain.
    return { text, domains: named.length > 0 ? named : [path.slice(path.lastIndexOf('/') + 1)] };
  });
  if (found.length === 0) return null;
  const servers = found.flatMap(({ text }) => [...text.matchAll(serverLine)].map(readServer));
  const domains = found.flatMap((each) => each.domains).map((domain) => `~${domain}`);
  return { servers: [...new Set(servers)], domains: [...new Set(domains)] };
}

function readServer([, address = '', port, ofMac]: RegExpMatchArray): string {
  const given = port ?? ofMac;
  return given === undefined ? address : `${address}:${given}`;
}
