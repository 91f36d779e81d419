import { describe, expect, test } from 'vitest';
import { type Address, tryParseAddress } from '../../../src/core/net/cidr.ts';
import { findListener, findListeners, isSystemUser, parseTcpSockets } from '../../../src/core/net/loopback-listener.ts';

/** A row of /proc/net/tcp or tcp6, as Linux 6.1 prints it. */
function row(local: string, remote: string, state: string, user: number, inode: number): string {
  const rest = '00000000:00000000 00:00000000 00000000';
  return `   0: ${local} ${remote} ${state} ${rest} ${String(user).padStart(5)}        0 ${inode} 1 0000000000000000 100 0 0 10 0\n`;
}

const none = '00000000:0000';
const none6 = `${'0'.repeat(32)}:0000`;
const loopback6 = '00000000000000000000000001000000';
const listen = (local: string, user: number, inode = user) =>
  row(local, local.length > 13 ? none6 : none, '0A', user, inode);

const address = (text: string) => tryParseAddress(text) as Address;
const at = (text: string, port = 8787) => ({ address: address(text), port });
const usersAt = (table: string, end: ReturnType<typeof at>) =>
  findListeners(parseTcpSockets(table), end, 'LE').map(({ user }) => user);

describe('the sockets that accept connections to an address', () => {
  test.each([
    ['of that address', '127.0.0.1', listen('0100007F:2253', 990), [990]],
    ['of another loopback address', '127.0.0.2', listen('0100007F:2253', 990), []],
    ['of another port', '127.0.0.1', listen('0100007F:2254', 990), []],
    ['of all IPv4 addresses', '127.0.0.9', listen('00000000:2253', 990), [990]],
    ['of all IPv4 addresses, for IPv6', '::1', listen('00000000:2253', 990), []],
    ['of both families', '127.0.0.1', listen(`${'0'.repeat(32)}:2253`, 990), [990]],
    ['of IPv6 loopback', '::1', listen(`${loopback6}:2253`, 990), [990]],
    ['of all IPv6 addresses', '::1', listen(`${'0'.repeat(32)}:2253`, 990), [990]],
    ['of an IPv4 address in an IPv6 socket', '127.0.0.1', listen('0000000000000000FFFF00000100007F:2253', 990), [990]],
    [
      'that share the port',
      '127.0.0.1',
      listen('0100007F:2253', 990, 1) + listen('0100007F:2253', 1001, 2),
      [990, 1001],
    ],
  ])('%s', (_what, to, table, users) => {
    expect(usersAt(table, at(to))).toEqual(users);
  });

  test('of IPv6 alone are not counted next to one of the address itself, which the kernel prefers', () => {
    const both = listen(`${'0'.repeat(32)}:2253`, 1001) + listen('0100007F:2253', 990) + listen('00000000:2254', 1001);
    expect(usersAt(both, at('127.0.0.1'))).toEqual([990]);
    expect(usersAt(both, at('::1'))).toEqual([1001]);
  });

  test('are found on a big-endian machine', () => {
    expect(findListeners(parseTcpSockets(listen('7F000001:2253', 990)), at('127.0.0.1'), 'BE')).toHaveLength(1);
  });
});

describe('who answers a connection', () => {
  const ends = { own: at('127.0.0.1', 40_000), service: at('127.0.0.1') };
  const service = (user: number, inode: number, state = '01') =>
    row('0100007F:2253', '0100007F:9C40', state, user, inode);
  const client = row('0100007F:9C40', '0100007F:2253', '01', 0, 77);
  const find = (before: string, after: string, all = '') =>
    findListener(
      ends,
      {
        before: parseTcpSockets(before),
        after: parseTcpSockets(after),
        readAll: () => parseTcpSockets(client + all),
      },
      (user) => user === 0 || user === 990,
      'LE',
    );
  const real = listen('0100007F:2253', 990, 1);
  const foreign = listen('0100007F:2253', 1001, 2);

  test('is the user of the socket that listened before and after', () => {
    expect(find(real, real)).toEqual({ kind: 'seen', user: 990 });
    expect(find(foreign, foreign)).toEqual({ kind: 'seen', user: 1001 });
  });

  test('is the foreign user among several that share the port', () => {
    expect(find(real + foreign, real + foreign)).toEqual({ kind: 'seen', user: 1001 });
    // Also if it began to listen only meanwhile.
    expect(find(real, real + foreign)).toEqual({ kind: 'seen', user: 1001 });
  });

  test('is not known where the real service listens again only after the connection was made', () => {
    expect(find(foreign, real)).toEqual({ kind: 'changed' });
    expect(find('', real)).toEqual({ kind: 'changed' });
    // A socket of the same user too: the connection may belong to a program in between.
    expect(find(real, listen('0100007F:2253', 990, 3))).toEqual({ kind: 'changed' });
    expect(find(real, real + listen('0100007F:2253', 990, 3))).toEqual({ kind: 'changed' });
  });

  test('is the user who accepted the connection and closed the listening socket', () => {
    expect(find(foreign, '', service(1001, 3))).toEqual({ kind: 'seen', user: 1001 });
    expect(find('', '', service(1001, 3, '05'))).toEqual({ kind: 'seen', user: 1001 });
    expect(find(real, '', service(990, 3))).toEqual({ kind: 'seen', user: 990 });
  });

  test('is not known where no program accepted the connection', () => {
    expect(find(foreign, '', service(0, 0))).toEqual({ kind: 'changed' });
  });

  test('is not visible where the other end of the connection is not in this network namespace', () => {
    expect(find('', '')).toEqual({ kind: 'unseen' });
    // Of a connection to another port, and of one from another port.
    expect(find('', '', row('0100007F:2254', '0100007F:9C40', '01', 1001, 3))).toEqual({ kind: 'unseen' });
    expect(find('', '', row('0100007F:2253', '0100007F:9C41', '01', 1001, 3))).toEqual({ kind: 'unseen' });
  });
});

test('system users are root, service users and dynamic users, and not the one that many programs share', () => {
  const users = [0, 999, 1000, 61_183, 61_184, 65_519, 65_520, 65_534];
  expect(users.filter(isSystemUser)).toEqual([0, 999, 61_184, 65_519]);
});
