import { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import { listOwnSockets } from '../../../src/control-plane/paths/own-sockets.ts';

const addresses = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .filter(({ family }) => family === 'IPv4')
  .map(({ address }) => address);

test.each([
  ['http://127.0.0.1:8080', 8080],
  ['https://0.0.0.0:443', 443],
  ['http://[::]:80', 80],
])('the sockets of %s are its port at each address of the machine', (url, port) => {
  expect(addresses.length).toBeGreaterThan(0);
  const sockets = listOwnSockets(url, []);
  expect(addresses.filter((address) => !sockets.has(`${address}:${port}`))).toEqual([]);
  expect([...sockets].filter((socket) => !socket.endsWith(`:${port}`))).toEqual([]);
});

test('a control plane at a Unix socket, or that does not listen yet, has no port', () => {
  for (const url of ['unix:/run/cpn/control-plane.sock', null])
    expect([...listOwnSockets(url, [])].filter((socket) => !socket.endsWith(':0'))).toEqual([]);
});

test('public URLs with an address count, with the usual port of their scheme', () => {
  const urls = ['https://192.0.2.1', 'http://[2001:db8::1]', 'https://[2001:db8::2]:8443', 'https://cpn.example.net'];
  const sockets = listOwnSockets(
    null,
    urls.map((url) => new URL(url)),
  );
  expect([...sockets].filter((socket) => !socket.endsWith(':0'))).toEqual([
    ...['192.0.2.1:443', '[2001:db8::1]:80', '[2001:db8::2]:8443'],
  ]);
});
