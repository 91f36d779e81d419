import { execFileSync } from 'node:child_process';
import { chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parseAddress } from '../../../../src/core/net/cidr.ts';
import {
  findLocalResolver,
  type OwnerCache,
  type ResolverFiles,
  readResolvers,
  rootsFiles,
} from '../../../../src/host/linux/dns/resolvers.ts';

/** A process, with the inodes of its sockets. */
interface Owner {
  readonly program: string;
  readonly argv?: readonly string[];
  readonly sockets: readonly number[];
}

/** A host of these files, and of these processes by their pid. */
function hostOf(texts: Readonly<Record<string, string>>, processes: Readonly<Record<string, Owner>> = {}) {
  const commandLines = Object.entries(processes).map(([pid, { program, argv = [] }]) => [
    `/proc/${pid}/cmdline`,
    [program, ...argv, ''].join('\0'),
  ]);
  const all: Record<string, string> = { ...texts, ...Object.fromEntries(commandLines) };
  const read = (path: string) => all[path] ?? '';
  return {
    read,
    listProcesses: () => Object.keys(processes),
    readOpenFiles: (pid) => ({ sockets: new Set(processes[pid]?.sockets.map(String)) }),
    readProgram: (pid) => processes[pid]?.program ?? '',
    settings: { read, list: () => [] },
  } satisfies ResolverFiles;
}

const own = [parseAddress('192.0.2.22')];
const find = (files: ResolverFiles, owners: OwnerCache = new Map()) => readResolvers(own, owners, files);
const glibc = (...servers: string[]) => ({
  '/etc/resolv.conf': servers.map((server) => `nameserver ${server}\n`).join(''),
});

const nowhere = ['00000000:0000', '00000000000000000000000000000000:0000'] as const;
/** A row of proc_pid_net(5): both ends in hexadecimal. */
const row = (local: string, remote: string, inode: number) =>
  `   1: ${local} ${remote} 07 00000000:00000000 00:00000000 00000000  0        0 ${inode} 2 0000000000000000 0\n`;
/** 127.0.0.1:53, 192.0.2.22:40960, 192.0.2.53 and ::1, as a little-endian machine prints them. */
const [stub, from, server] = ['0100007F:0035', '160200C0:A000', '350200C0'];
const stub6 = '00000000000000000000000001000000:0035';

describe('a local resolver', () => {
  const udp = (local: string, user = 0) => ({
    '/proc/net/udp': row(local, nowhere[0], 7).replace('00000000  0', `00000000  ${user}`),
  });
  const published = { '/run/systemd/resolve/resolv.conf': 'nameserver 192.0.2.53\n' };

  it.each([
    ['listens at the first server', { ...glibc('127.0.0.1', '192.0.2.53'), ...udp(stub) }, 'listening'],
    ['is at a stub of another program', { ...glibc('127.0.0.53'), ...udp('3500007F:0035') }, 'listening'],
    ['listens nowhere for a moment', glibc('127.0.0.1'), 'silent'],
    ['is not on another host', glibc('192.0.2.53'), null],
    ['is not at the second server', { ...glibc('192.0.2.53', '127.0.0.1'), ...udp(stub) }, null],
    ['is not systemd-resolved', { ...glibc('127.0.0.53'), ...udp('3500007F:0035'), ...published }, null],
    ['is not that of a user', { ...glibc('127.0.0.1'), ...udp(stub, 1000) }, null],
  ])('%s', (_, texts, found) => {
    expect(findLocalResolver(own, hostOf(texts))).toBe(found);
  });
});

describe('the resolvers of a host', () => {
  it('are those of its file where none of them is here', () => {
    expect(find(hostOf(glibc('192.0.2.53', '2001:db8::53')))).toEqual({ resolvers: ['192.0.2.53', '2001:db8::53'] });
  });

  it.each(['127.0.0.53', '127.0.0.54'])('are those that systemd-resolved publishes, for its stub %s', (address) => {
    const published = { '/run/systemd/resolve/resolv.conf': 'nameserver 192.0.2.53\n' };
    expect(find(hostOf({ ...glibc(address), ...published }))).toEqual({ resolvers: [address, '192.0.2.53'] });
    // Without what it publishes, it is a stub like any other.
    expect(find(hostOf(glibc(address))).stubs).toMatchObject([{ address, isListening: false }]);
  });

  it.each([
    ['UDP', '127.0.0.1', { '/proc/net/udp': row(stub, nowhere[0], 7) }],
    ['UDP over IPv6', '::1', { '/proc/net/udp6': row(stub6, nowhere[1], 7) }],
    ['TCP alone', '127.0.0.1', { '/proc/net/tcp': row(stub, nowhere[0], 7) }],
    ['TCP over IPv6 alone', '::1', { '/proc/net/tcp6': row(stub6, nowhere[1], 7) }],
  ])('are those that the settings of a local stub state: by %s', (_, address, table) => {
    const dnsmasq = { program: 'dnsmasq', argv: ['-C', '/dev/null', '-R', '-S', '192.0.2.53'], sockets: [7] };
    const { resolvers, stubs } = find(hostOf({ ...glibc(address), ...table }, { 70: dnsmasq }));
    expect(resolvers).toEqual([address, '192.0.2.53']);
    expect(stubs).toMatchObject([
      { address, isListening: true, program: 'dnsmasq', isStated: true, stated: ['192.0.2.53'] },
    ]);
  });

  it.each([
    ['53', 'udp', '0035'],
    ['853, over TLS', 'tcp', '0355'],
  ])('to which a program of unknown settings has sockets are observed: at port %s', (_, table, port) => {
    const rows = { '/proc/net/udp': row(stub, nowhere[0], 7) };
    const texts = { ...glibc('127.0.0.1'), ...rows };
    const socket = row(from, `${server}:${port}`, 8);
    const path = `/proc/net/${table}` as '/proc/net/udp';
    const files = hostOf(
      { ...texts, [path]: `${(texts as Record<string, string>)[path] ?? ''}${socket}` },
      { 70: { program: 'dnscrypt-proxy', sockets: [7, 8] } },
    );
    expect(find(files).stubs).toMatchObject([{ isStated: false, observed: ['192.0.2.53'] }]);
  });

  it('of a stub with more servers than are followed are not all stated', () => {
    const stated = (count: number) => {
      const servers = Array.from({ length: count }, (_, index) => ['-S', `192.0.2.${100 + index}`]).flat();
      const dnsmasq = { program: 'dnsmasq', argv: ['-C', '/dev/null', '-R', ...servers], sockets: [7] };
      const table = { '/proc/net/udp': row(stub, nowhere[0], 7) };
      const [found] = find(hostOf({ ...glibc('127.0.0.1'), ...table }, { 70: dnsmasq })).stubs ?? [];
      return [found?.isStated, found?.stated.length];
    };
    expect([stated(16), stated(17)]).toEqual([
      [true, 16],
      [false, 16],
    ]);
  });

  it('are followed through a stub that queries another one of this host, which is not stated itself', () => {
    const [first, second] = ['0100007F:0035', '0100007F:14D7'];
    const table = { '/proc/net/udp': row(first, nowhere[0], 7) + row(second, nowhere[0], 8) };
    const usual = ['-C', '/dev/null', '-R', '-S'];
    const files = hostOf(
      { ...glibc('127.0.0.1'), ...table },
      {
        70: { program: 'dnsmasq', argv: [...usual, '127.0.0.1#5335'], sockets: [7] },
        // The second one queries the first one again, which is no reason to go on for ever.
        71: { program: 'dnsmasq', argv: [...usual, '192.0.2.53', '-S', '127.0.0.1'], sockets: [8] },
      },
    );
    const { resolvers, stubs = [] } = find(files);
    expect(resolvers).toEqual(['127.0.0.1', '192.0.2.53']);
    expect(stubs.map(({ stated }) => stated)).toEqual([[], ['192.0.2.53']]);
  });
});

describe('the process that owns the socket of a stub', () => {
  const table = { '/proc/net/udp': row(stub, nowhere[0], 7) };
  const dnsmasq = (address: string, inode = 7) => ({
    ...{ program: 'dnsmasq', argv: ['-C', '/dev/null', '-R', '-S', address] },
    sockets: [inode],
  });
  const texts = { ...glibc('127.0.0.1'), ...table };

  it('is searched for once', () => {
    const owners: OwnerCache = new Map();
    const files = hostOf(texts, { 70: dnsmasq('192.0.2.53') });
    let searches = 0;
    const listProcesses = () => {
      searches += 1;
      return files.listProcesses();
    };
    for (let turn = 0; turn < 3; turn += 1)
      expect(find({ ...files, listProcesses }, owners).resolvers).toContain('192.0.2.53');
    expect(searches).toBe(1);
  });

  it('is searched for again once it no longer has the socket: its pid may be that of another process', () => {
    const owners: OwnerCache = new Map();
    find(hostOf(texts, { 70: dnsmasq('192.0.2.53') }), owners);
    const later = hostOf(texts, { 70: { program: 'sh', sockets: [] }, 80: dnsmasq('192.0.2.54') });
    expect(find(later, owners).stubs).toMatchObject([{ program: 'dnsmasq', stated: ['192.0.2.54'] }]);
  });

  it('that is not visible is not searched for again, and has the usual settings', () => {
    const owners: OwnerCache = new Map();
    const files = hostOf({ ...texts, '/etc/unbound/unbound.conf': 'forward-addr: 192.0.2.53\n' });
    const expected = [{ isListening: true, program: null, isStated: false, stated: ['192.0.2.53'], observed: [] }];
    expect(find(files, owners).stubs).toMatchObject(expected);
    const refuses = () => {
      throw new Error('searched again');
    };
    expect(find({ ...files, listProcesses: refuses }, owners).stubs).toMatchObject(expected);
  });
});

describe('a file that settings of root name', () => {
  it('is read only where it is a regular one of root, of a bounded size, by its whole path', () => {
    const folder = mkdtempSync(join(tmpdir(), 'cpn-settings-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const write = (name: string, text: string) => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    const read = (path: string) => rootsFiles.read(path).length;
    expect(read(write('usual', 'server=192.0.2.1'))).toBe(16);
    expect(read(write('large', ' '.repeat(1 << 20)))).toBe(1 << 20);
    expect(read(write('larger', ' '.repeat((1 << 20) + 1)))).toBe(0);
    const foreign = write('foreign', 'server=192.0.2.1');
    chownSync(foreign, 1000, 0);
    symlinkSync(foreign, join(folder, 'link'));
    mkdirSync(join(folder, 'folder'));
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    for (const name of ['foreign', 'link', 'folder', 'pipe', 'none'])
      expect([name, read(join(folder, name))]).toEqual([name, 0]);
    expect([read('/dev/zero'), read('etc/hosts'), rootsFiles.read('')]).toEqual([0, 0, '']);
    expect([rootsFiles.list(join(folder, 'folder')), rootsFiles.list('/nonexistent')]).toEqual([[], []]);
    expect(rootsFiles.list(folder)).toEqual(rootsFiles.list(folder).toSorted());
  });
});
