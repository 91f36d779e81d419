/**
 * The whole state of a host as a text with one fact a line, for comparing before and after. What changes by itself is left out or
 * made the same: interface numbers, timers, lifetimes, counters, handshakes, process ids, random link-local addresses.
 *
 * @module
 */
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join, relative } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { COMMAND_SERVER } from './command-server.ts';
import type { Host } from './host.ts';

/** A line with this word and a name starts each section; no tool prints it. */
const MARK = '@@@';

/**
 * The observers. Each may fail (a host without IPv6 has no IPv6 rules), which then shows as an empty section. The sysctls of neighbours,
 * which are half of all, are left out.
 */
const OBSERVE = `
sec() { echo "${MARK} $1"; }
sec self; echo $$
sec links; ip -j -d link
sec addresses; ip -j address
sec routes4; ip -j -4 -d route show table all
sec routes6; ip -j -6 -d route show table all
sec rules4; ip -j -4 rule
sec rules6; ip -j -6 rule
sec nftables; nft -s list ruleset
sec wireguard; wg show all dump
sec sysctls; grep -rs --exclude-dir=neigh . /proc/sys/net/ipv4 /proc/sys/net/ipv6
sec processes; ps -e -o pid=,ppid=,args=
`;

/** Sysctls that the kernel changes by itself, or that hold a secret of it. */
const VOLATILE_SYSCTL = /\/(tcp_fastopen_key|stable_secret|ip6frag_secret_interval|route\/flush)$/;

type Json = Record<string, unknown>;

/** How often a host is observed until it is settled, and the pause between two observations, in milliseconds. */
const MOST_OBSERVATIONS = 60;
const PAUSE = 50;

/** Reads the state of a running host. */
export async function hostState(host: Host): Promise<string> {
  let raw = await observe(host);
  for (let count = 1; count < MOST_OBSERVATIONS && !isSettled(raw); count += 1) {
    await setTimeout(PAUSE);
    raw = await observe(host);
  }
  const lines = (name: string): string[] => (raw.get(name) ?? '').split('\n').filter((line) => line !== '');
  const items = (name: string): Json[] => itemsOf(raw, name);
  const sections: Record<string, string[]> = {
    links: sorted(items('links').map(linkLine)),
    addresses: sorted(items('addresses').flatMap(addressLines)),
    routes: sorted([...items('routes4').map(routeLine), ...items('routes6').map(routeLine)]),
    rules: [...items('rules4').map((rule) => `4 ${text(rule)}`), ...items('rules6').map((rule) => `6 ${text(rule)}`)],
    nftables: lines('nftables'),
    wireguard: sorted(lines('wireguard').map(wireguardLine)),
    sysctls: sorted(lines('sysctls').flatMap(sysctlLine)),
    processes: sorted(processLines(lines('processes'), raw.get('self') ?? '')),
    files: sorted(fileLines(host)),
  };
  return Object.entries(sections)
    .map(([name, facts]) => [`# ${name}`, ...facts].join('\n'))
    .join('\n\n');
}

/** The output of each observer, by the name of its section. */
type Observed = ReadonlyMap<string, string>;

async function observe(host: Host): Promise<Observed> {
  const { stdout } = await host.exec(['sh', '-c', OBSERVE], { allowFailure: true });
  const parts = stdout.split(new RegExp(`^${MARK} `, 'm')).slice(1);
  return new Map(
    parts.map((part) => {
      const end = part.indexOf('\n');
      return [part.slice(0, end), part.slice(end + 1).trimEnd()];
    }),
  );
}

/** True once the kernel has given every card with a carrier its link-local address: it does so by itself, a moment after it comes up. */
function isSettled(raw: Observed): boolean {
  const hasIpv6 = (card: unknown) => raw.get('sysctls')?.includes(`/ipv6/conf/${card}/disable_ipv6:0`);
  const isDone = ({ scope, tentative }: Json) => scope === 'link' && tentative !== true;
  return itemsOf(raw, 'addresses')
    .filter(({ ifname, flags }) => /^eth\d/.test(`${ifname}`) && (flags as string[]).includes('LOWER_UP'))
    .every(
      ({ ifname, addr_info }) =>
        !hasIpv6(ifname) || (addr_info as Json[]).some((each) => each.family === 'inet6' && isDone(each)),
    );
}

function itemsOf(raw: Observed, name: string): Json[] {
  return JSON.parse(raw.get(name) || '[]') as Json[];
}

function linkLine(link: Json): string {
  const info = link.linkinfo as Json | undefined;
  const up = (link.flags as string[]).includes('UP') ? 'up' : 'down';
  const optional = ['master', 'ifalias'].filter((key) => link[key] !== undefined).map((key) => `${key} ${link[key]}`);
  return [link.ifname, info?.info_kind ?? link.link_type, up, `mtu ${link.mtu}`, ...optional].join(' ');
}

function addressLines(link: Json): string[] {
  return (link.addr_info as Json[]).map((address) => {
    const peer = address.address === undefined ? '' : ` peer ${address.address}`;
    return `${link.ifname} ${stable(`${address.local}`)}/${address.prefixlen}${peer} ${address.scope}`;
  });
}

function routeLine({ expires: _expires, flags: _flags, ...route }: Json): string {
  return text({ ...route, dst: stable(`${route.dst}`) });
}

/** The settings of an interface (5 columns) or a peer (9 columns), no private or preshared key, nothing learned or counted. */
function wireguardLine(line: string): string {
  const columns = line.split('\t');
  if (columns.length === 5) return `${columns[0]} interface ${columns[2]} port ${columns[3]} fwmark ${columns[4]}`;
  const [name, peer, psk, endpoint, allowedIps = '', , , , keepalive] = columns;
  const sortedIps = allowedIps.split(',').sort().join(',');
  const preshared = psk === '(none)' ? 'without psk' : 'with psk';
  return `${name} peer ${peer} ${preshared} endpoint ${endpoint} allowed-ips ${sortedIps} keepalive ${keepalive}`;
}

function sysctlLine(line: string): string[] {
  const at = line.indexOf(':');
  const path = line.slice(0, at);
  return VOLATILE_SYSCTL.test(path)
    ? []
    : [`${path.slice('/proc/sys/'.length)} = ${line.slice(at + 1).replaceAll('\t', ' ')}`];
}

/** All but the holder, and the trees of the observer and the command server. */
function processLines(lines: string[], self: string): string[] {
  const rows = lines.map((line) => /^ *(\d+) +(\d+) (.*)$/.exec(line) ?? ['', '', '', line]);
  const ours = new Set(['1', self]);
  for (const [, pid = '', parent = '', args = ''] of rows) {
    // `ps` lists a parent before its children, but for process ids that start over.
    if (ours.has(pid) || (parent !== '1' && ours.has(parent)) || args.includes(COMMAND_SERVER)) ours.add(pid);
  }
  return rows.filter(([, pid = '']) => !ours.has(pid)).map((row) => `${row[3]}`);
}

/** Everything in the host's folder, but for the links that make up its /etc. Hundreds of small files: read one after another, they cost least. */
function fileLines(host: Host): string[] {
  return readdirSync(host.folder, { recursive: true, withFileTypes: true }).flatMap((entry) => {
    const path = join(entry.parentPath, entry.name);
    const line = describeFile(path);
    if (line === undefined || line.startsWith(`-> ${host.folder}/machine-etc/`)) return [];
    return [`${relative(host.folder, path)} ${line}`];
  });
}

/** A file that is removed during the observation is not part of the state. */
function describeFile(path: string): string | undefined {
  try {
    const info = lstatSync(path);
    if (info.isSymbolicLink()) return `-> ${readlinkSync(path)}`;
    const mode = (info.mode & 0o7777).toString(8).padStart(4, '0');
    if (info.isDirectory()) return `${mode} folder`;
    if (!info.isFile()) return `${mode} ${info.isSocket() ? 'socket' : 'special'}`;
    const hash = createHash('sha256').update(readFileSync(path)).digest('hex');
    return `${mode} ${info.size} bytes sha256:${hash.slice(0, 16)}`;
  } catch {
    return undefined;
  }
}

/** Link-local addresses come from random numbers; one is as good as another. */
function stable(address: string): string {
  return address.replace(/^fe80::[0-9a-f:]+/, (found) => (found === 'fe80::' ? found : 'fe80::*'));
}

function text(item: Json): string {
  return Object.keys(item)
    .sort()
    .map((key) =>
      item[key] === null ? key : `${key}=${typeof item[key] === 'object' ? JSON.stringify(item[key]) : item[key]}`,
    )
    .join(' ');
}

function sorted(lines: string[]): string[] {
  return lines.toSorted();
}
