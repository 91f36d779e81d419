import { lstatSync, readFileSync, readlinkSync } from 'node:fs';
import type { Socket } from 'node:net';
import { endianness } from 'node:os';
import type { buildConnector } from 'undici';
import { type Address, tryParseAddress } from '../../core/net/cidr.ts';
import { findListener, findListeners, isSystemUser, type TcpSocket } from '../../core/net/loopback-listener.ts';
import { isCheckedByListener, type ServiceAddress } from '../../core/net/service-address.ts';
import { socketPathOf } from '../../core/net/socket-path.ts';
import type { ListeningUser } from '../service.ts';
import { AttemptFailed } from './attempt-failed.ts';
import type { ExpectedUser } from './target.ts';
import { readListeningSockets, readSockets } from './tcp-sockets.ts';

export type SocketConnector = ReturnType<typeof buildConnector>;

/**
 * Connects to a loopback address without TLS, and checks whose program accepted before anything is
 * sent. Any local user can bind the port of a control plane that is down. Root and the user of this
 * process are always trusted, because they can read the secrets anyway.
 *
 * @param expected the user whose program listened before; null if none is stored, and any is
 *   trusted
 * @param onUser receives the user whose program accepted; null if not visible, as behind a DNAT
 *   rule
 */
export function withListenerCheck(
  dial: SocketConnector,
  { expected }: ExpectedUser,
  onUser: (user: number | null) => void,
): SocketConnector {
  return (options, done) => {
    const before = readListeningSockets();
    dial(options, (...[error, socket]) => {
      if (!socket) return done(error as Error, null);
      try {
        onUser(judge(socket, before, expected));
      } catch (problem) {
        socket.destroy();
        return done(problem as Error, null);
      }
      done(null, socket);
    });
  };
}

function judge(socket: Socket, before: readonly TcpSocket[], expected: number | null): number | null {
  const ends = {
    own: endOf(socket.localAddress, socket.localPort),
    service: endOf(socket.remoteAddress, socket.remotePort),
  };
  const isTrusted = (user: number) => expected === null || user === expected || isPrivileged(user);
  const tables = { before, after: readListeningSockets(), readAll: readSockets };
  const listener = findListener(ends, tables, isTrusted, endianness());
  if (listener.kind === 'seen' && isTrusted(listener.user)) return listener.user;
  if (listener.kind === 'unseen' || expected === null) return null;
  const common = { sent: false, perhapsDone: false, heard: false };
  if (listener.kind === 'changed') {
    const problem = 'the program that listens there changed while the connection was made';
    throw new AttemptFailed(problem, { ...common, retry: true, remedy: 'try again' });
  }
  const problem = `${describeUser(listener.user)} listens there, and ${describeUser(expected)} did before`;
  throw new AttemptFailed(problem, { ...common, retry: false, foreign: { problem, remedy: null } });
}

/**
 * The user who listens at a loopback address without TLS; else null, also if not visible.
 *
 * @param before the stored user
 */
export function findListeningUser({ url }: ServiceAddress, before?: number): ListeningUser | null {
  const user = findUser(url);
  if (user === null) return null;
  const previousUser = before === undefined || before === user ? null : describeUser(before);
  const isLoginUser = !isPrivileged(user) && !isSystemUser(user);
  return { user, description: describeUser(user), previousUser, isLoginUser };
}

function findUser(url: string): number | null {
  const path = socketPathOf(url);
  if (path !== null) return findOwner(path);
  if (!isCheckedByListener(url)) return null;
  const { hostname, port } = new URL(url);
  const sockets = readListeningSockets();
  const ranks = addressesOf(hostname).map((address) =>
    findListeners(sockets, { address, port: Number(port || '80') }, endianness()),
  );
  const found = ranks.find((each) => each.length > 0) ?? [];
  return (found.find(({ user }) => !isPrivileged(user)) ?? found[0])?.user ?? null;
}

/** Returns the owner of a Unix socket; null if the path has no socket. */
function findOwner(path: string): number | null {
  try {
    const stats = lstatSync(path);
    return stats.isSocket() ? stats.uid : null;
  } catch {
    return null;
  }
}

/** The addresses in the order in which a connection tries them. */
function addressesOf(hostname: string): Address[] {
  const texts = hostname === 'localhost' ? ['127.0.0.1', '::1'] : [hostname.replace(/^\[|\]$/g, '')];
  return texts.flatMap((text) => tryParseAddress(text) ?? []);
}

function endOf(text = '', port = 0) {
  // A socket of both families has an IPv4 address in IPv6 form (RFC 4291, 2.5.5.2).
  const address = tryParseAddress(text.replace(/^::ffff:(?=[\d.]+$)/i, '')) ?? ('0.0.0.0' as Address);
  return { address, port };
}

/** True for root and the user of this process. */
export function isPrivileged(user: number): boolean {
  return user === 0 || user === process.geteuid?.();
}

/** A user for a message: the uid, and the name where this host has one for it. */
export function describeUser(user: number): string {
  const name = findAccount(user) ?? findDynamicUser(user);
  return name === null ? `user ${user}` : `user ${user} (${name})`;
}

function findAccount(user: number): string | null {
  try {
    const accounts = readFileSync('/etc/passwd', 'latin1');
    return new RegExp(`^([A-Za-z0-9_.-]{1,64}):[^:]*:${user}:`, 'm').exec(accounts)?.[1] ?? null;
  } catch {
    return null;
  }
}

/** systemd links the uid of a unit with `DynamicUser=` to its name. */
function findDynamicUser(user: number): string | null {
  try {
    const name = readlinkSync(`/run/systemd/dynamic-uid/direct:${user}`);
    return /^[A-Za-z0-9_.-]{1,64}$/.test(name) ? name : null;
  } catch {
    return null;
  }
}
