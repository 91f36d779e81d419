import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { findListeningUser, type SocketConnector, withListenerCheck } from '../../../src/api/http/listener-check.ts';

/** A program of this user that listens at an address; returns its port. */
async function listen(host: string): Promise<number> {
  const server = createServer((socket) => void socket.on('error', () => {})).listen({ host, port: 0 });
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
