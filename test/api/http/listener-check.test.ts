import { once } from 'node:events';
import fs, { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import {
  describeUser,
  findListeningUser,
  type SocketConnector,
  withListenerCheck,
} from '../../../src/api/http/listener-check.ts';

/** A program of this user that listens at an address; returns its port. */
async function listen(host: string, port = 0): Promise<number> {
  const server = createServer((socket) => void socket.on('error', () => {})).listen({ host, port });
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Makes a connection, with the check; the user whose program answered, where one is visible. */
async function userOf(hostname: string, port: number): Promise<number | null> {
  const dial = ((_options, done) => {
    const socket = connect({ host: hostname, port }, () => done(null, socket));
    socket.on('error', (error) => done(error, null));
    onTestFinished(() => void socket.destroy());
  }) as SocketConnector;
  const users: (number | null)[] = [];
  const check = withListenerCheck(dial, { expected: null } as never, (user) => users.push(user));
  await new Promise<void>((resolve, reject) => {
    check({} as never, (...[error]) => (error ? reject(error) : resolve()));
  });
  return users[0] ?? null;
}

const me = process.geteuid?.() ?? 0;

it.each([
  ['127.0.0.1', '127.0.0.1', '127.0.0.1'],
  ['127.0.0.1', 'localhost', '127.0.0.1'],
  ['127.0.0.1', '127.0.0.1', '::ffff:127.0.0.1'],
  ['0.0.0.0', '127.0.0.1', '127.0.0.1'],
  ['::1', '[::1]', '::1'],
  ['::1', 'localhost', '::1'],
  ['::', '[::1]', '::1'],
  ['::', '127.0.0.1', '127.0.0.1'],
  ['::', '127.0.0.1', '::ffff:127.0.0.1'],
])('the user who listens at %s is found for the host %s, and on a connection to %s', async (at, host, dialled) => {
  const port = await listen(at);
  expect(findListeningUser({ url: `http://${host}:${port}`, insecureHttp: false })?.user).toBe(me);
  expect(await userOf(dialled, port)).toBe(me);
});

it.each([
  ['127.0.0.1', '[::1]'],
  ['::1', '127.0.0.1'],
])('a program that listens at %s is none at %s', async (at, host) => {
  const port = await listen(at);
  expect(findListeningUser({ url: `http://${host}:${port}`, insecureHttp: false })).toBeNull();
});

it('a user is named by the account of this host that has this uid, and else by the uid alone', () => {
  const accounts = readFileSync('/etc/passwd', 'latin1')
    .trim()
    .split('\n')
    .map((line) => line.split(':'));
  const named = new Map(accounts.toReversed().map(([name, , uid]) => [Number(uid), name]));
  for (const [uid, name] of named) expect(describeUser(uid)).toBe(`user ${uid} (${name})`);
  const unused = Math.max(...named.keys()) + 1;
  expect(describeUser(unused)).toBe(`user ${unused}`);
});

it.each<[number | undefined, boolean]>([
  [undefined, false],
  [me, false],
  [me + 1, true],
])('the user who listened before is named where it was another one: %j', async (before, isNamed) => {
  const port = await listen('127.0.0.1');
  const found = findListeningUser({ url: `http://127.0.0.1:${port}`, insecureHttp: false }, before);
  expect(found).toEqual({
    ...{ user: me, description: describeUser(me), isLoginUser: false },
    previousUser: isNamed ? describeUser(me + 1) : null,
  });
});

it('a socket has the user who owns it, and what is no socket has none', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cpn-owner-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const server = createServer().listen(join(folder, 'socket'));
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  writeFileSync(join(folder, 'file'), '');
  const userAt = (name: string) => findListeningUser({ url: `unix:${join(folder, name)}`, insecureHttp: false })?.user;
  expect(['socket', 'file', 'none'].map(userAt)).toEqual([me, undefined, undefined]);
});

it('a URL without a port is that of port 80', async () => {
  // No other program of this machine is there.
  await listen('127.80.0.80', 80);
  expect(findListeningUser({ url: 'http://127.80.0.80', insecureHttp: false })?.user).toBe(me);
  expect(findListeningUser({ url: 'http://127.80.0.81', insecureHttp: false })).toBeNull();
});

it.each([
  [me, false],
  [0, false],
  [999, false],
  [1_000, true],
  [61_183, true],
  [61_184, false],
  [65_519, false],
  // Many programs share it.
  [65_534, true],
])('user %i is one who logs in: %s', async (user, isLoginUser) => {
  const folder = mkdtempSync(join(tmpdir(), 'cpn-owner-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'socket');
  const server = createServer().listen(path);
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  chownSync(path, user, user);
  const found = findListeningUser({ url: `unix:${path}`, insecureHttp: false }, user);
  expect(found).toEqual({ user, description: describeUser(user), previousUser: null, isLoginUser });
});

it('the user of this process is none who logs in: it can read the secrets anyway', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cpn-owner-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'socket');
  const server = createServer().listen(path);
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  chownSync(path, 1_000, 1_000);
  const own = vi.spyOn(process as { geteuid: () => number }, 'geteuid').mockReturnValue(1_000);
  onTestFinished(() => own.mockRestore());
  expect(findListeningUser({ url: `unix:${path}`, insecureHttp: false })).toMatchObject({ isLoginUser: false });
});

it('a user that systemd made for a unit is named by the link to its uid, if that is a name', () => {
  const links: Record<string, string> = { 'direct:61300': 'cpn-control-plane', 'direct:61301': '../x\n' };
  const read = vi.spyOn(fs, 'readlinkSync').mockImplementation((path) => {
    const name = links[String(path).replace('/run/systemd/dynamic-uid/', '')];
    if (name === undefined) throw new Error('ENOENT');
    return name;
  });
  syncBuiltinESMExports();
  onTestFinished(() => {
    read.mockRestore();
    syncBuiltinESMExports();
  });
  expect([61_300, 61_301, 61_302].map(describeUser)).toEqual([
    'user 61300 (cpn-control-plane)',
    'user 61301',
    'user 61302',
  ]);
});
