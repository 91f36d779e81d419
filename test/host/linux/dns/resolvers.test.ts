import { describe, expect, it } from 'vitest';
import { parseAddress } from '../../../../src/core/net/cidr.ts';
import { findListening, findServers, isListening } from '../../../../src/host/linux/dns/resolvers.ts';
import { parseSockets } from '../../../../src/host/linux/socket-table.ts';

/** A row of proc_pid_net(5) for a socket at `local` (in hexadecimal) that takes queries. */
const rowOf = (local: string, user: number, inode: number) =>
  `   1: ${local} 00000000:0000 07 00000000:00000000 00:00000000 00000000  ${user}        0 ${inode} 2 0000000000000000 0\n`;
const [stub, any, ipv6] = ['3500007F:0035', '00000000:0035', '00000000000000000000000000000000:0035'];
const find = (datagrams: string, streams = '') => {
  const parse = (text: string) => parseSockets(text, new Set([53]), 'LE');
  return findListening({ datagrams: parse(datagrams), streams: parse(streams) }, parseAddress('127.0.0.53'), 53);
};

describe('the sockets of a local resolver', () => {
  it.each<[what: string, datagrams: string, streams: string, inodes: string[]]>([
    ['root', rowOf(stub, 0, 7), rowOf(stub, 0, 8), ['7']],
    ['a user of a service', rowOf(stub, 999, 7), '', ['7']],
    ['a user that systemd made for a service', rowOf(stub, 64_000, 7), '', ['7']],
    ['root, for TCP alone', '', rowOf(any, 0, 8), ['8']],
    ['root at this address, not those at all addresses', rowOf(any, 0, 6) + rowOf(stub, 0, 7), '', ['7']],
    ['root, next to that of an ordinary user', rowOf(stub, 1000, 6) + rowOf(stub, 0, 7), '', ['7']],
    ['root by UDP, and not an ordinary user by TCP', rowOf(ipv6, 0, 7), rowOf(stub, 1000, 8), ['7']],
  ])('are those of %s', (_what, datagrams, streams, inodes) => {
    expect(find(datagrams, streams)).toEqual({ inodes, stranger: null });
  });

  it.each([
    ['a login user', 1000],
    ['the user of programs without rights', 65_534],
    ['a container without root', 100_000],
  ])('are none of %s, who could name addresses that stay outside the tunnel', (_what, user) => {
    expect(find(rowOf(stub, user, 7) + rowOf(any, 0, 6), rowOf(stub, 0, 8))).toEqual({ inodes: [], stranger: user });
  });
});

describe('the servers of a local resolver', () => {
  it('are distinguished by the local address of its sockets: one of this host outside its tunnels, or another', () => {
    const row = (local: string, remote: string, inode: number) =>
      rowOf(local, 0, inode).replace('00000000:0000', remote);
    // 192.0.2.22 is this host's, and 10.77.0.2 that of a tunnel.
    const [outside, tunnel] = ['160200C0:A000', '02004D0A:A001'];
    const text = row(outside, '350200C0:0035', 7) + row(tunnel, '3532A8C0:0035', 8) + row(tunnel, '3632A8C0:0035', 9);
    const rows = parseSockets(text, new Set([53]), 'LE');
    expect(findServers(rows, new Set(['7', '8']), [parseAddress('192.0.2.22')])).toEqual({
      observed: ['192.0.2.53'],
      tunnelled: ['192.168.50.53'],
    });
  });
});

it('the server of names is a socket of root, at the address itself', () => {
  const row = (local: string, user: number) =>
    `  1: ${local}:0229 00000000:0000 07 00000000:00000000 00:00000000 00000000 ${user} 0 4242 2 0 0`;
  const is = (line: string) =>
    isListening(parseAddress('10.77.0.2'), 553, (path) => (path === '/proc/net/udp' ? `header\n${line}\n` : ''));
  expect(is(row('02004D0A', 0))).toBe(true);
  expect([is(row('02004D0A', 33)), is(row('00000000', 0)), is(row('03004D0A', 0)), is('')]).toEqual([
    false,
    false,
    false,
    false,
  ]);
});
