import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { closePlane, openPlane, type Plane, startPlane } from '../harness.ts';
import { connectRaw, refusalIn } from '../raw.ts';

const deadlines = { headers: 300, request: 900, keepAlive: 300, checkInterval: 50 };
const kib = 1024;

let plane: Plane;
beforeAll(async () => {
  plane = await openPlane({ deadlines });
});
afterAll(() => closePlane(plane));

const login = (...headers: string[]) =>
  ['POST /api/auth/login HTTP/1.1', 'Host: x', 'Content-Type: application/json', ...headers, '', ''].join('\r\n');

describe('a client that takes its time', () => {
  test.each([
    ['says nothing', ''],
    ['never ends its headers', 'GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: '],
    ['never ends its body', `${login('Content-Length: 100')}{"email":`],
    ['never ends its chunks', `${login('Transfer-Encoding: chunked')}5\r\n{"ema\r\n`],
  ])('and %s is sent away', async (_what, text) => {
    const slow = await connectRaw(plane.url);
    slow.send(text);
    const refused = { status: 408, message: 'the request took too long to arrive' };
    expect(refusalIn(await slow.ended())).toEqual(refused);
    expect((await plane.call('GET', '/healthz')).status).toBe(200);
  });

  test('is sent away though it sends a byte now and then', async () => {
    const slow = await connectRaw(plane.url);
    slow.send('GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ');
    const dripping = setInterval(() => slow.send('x'), 20);
    try {
      expect(refusalIn(await slow.ended()).status).toBe(408);
    } finally {
      clearInterval(dripping);
    }
  });

  test('loses its connection after a while without a request', async () => {
    const idle = await connectRaw(plane.url);
    idle.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await idle.until('{"status":"ok"}');
    expect(await idle.ended()).toMatch(/^HTTP\/1.1 200 /);
  });

  test('loses its connection when it does not take its replies', async () => {
    const { url } = await startPlane({ deadlines: { idle: 500 } });
    const { promise: accepted, resolve } = Promise.withResolvers<Socket>();
    const listen = (message: unknown) => resolve((message as { socket: Socket }).socket);
    subscribe('net.server.socket', listen);
    const deaf = await connectRaw(url);
    // The server's end: a client that does not read sees nothing of the end.
    const left = once(await accepted, 'close');
    unsubscribe('net.server.socket', listen);
    deaf.socket.pause();
    // More than the buffers on the way hold.
    deaf.send('GET /docs/api/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(500));
    await left;
    deaf.socket.destroy();
  });

  test('is no error of ours', () => {
    expect(plane.log()).not.toMatch(/"level":[4-6]0/);
  });
});

describe('too much', () => {
  test('in the headers gets a 431', async () => {
    const large = await connectRaw(plane.url);
    large.send(`GET /healthz HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(16 * kib)}\r\n\r\n`);
    const refused = { status: 431, message: 'the headers of the request are larger than 15.5 KiB' };
    const reply = await large.ended();
    expect(refusalIn(reply)).toEqual(refused);
    expect(reply).not.toMatch(/clear-site-data/i);
  });

  test('of cookies is a 431 that clears them in the browser', async () => {
    const large = await connectRaw(plane.url);
    const planted = Array.from({ length: 6 }, (_, index) => `planted${index}=${'x'.repeat(3800)}`);
    large.send(`GET / HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\nCookie: ${planted.join('; ')}\r\n\r\n`);
    const reply = await large.ended();
    expect(refusalIn(reply)).toEqual({ status: 431, message: expect.stringContaining('delete the cookies') });
    expect(reply).toContain('\r\nClear-Site-Data: "cookies"\r\n');
  });

  test('of a URL clears no cookies, which any page could bring about by a link', async () => {
    const large = await connectRaw(plane.url);
    const cookie = `session=${'x'.repeat(3800)}; other=${'y'.repeat(3800)}`;
    large.send(`GET /${'a'.repeat(9 * kib)} HTTP/1.1\r\nHost: x\r\nCookie: ${cookie}\r\n\r\n`);
    const reply = await large.ended();
    expect(refusalIn(reply).status).toBe(431);
    expect(reply).not.toMatch(/clear-site-data/i);
  });

  test('does not begin with 15 KiB of headers', async () => {
    const { status } = await plane.call('GET', '/healthz', { headers: { 'x-large': 'x'.repeat(15 * kib) } });
    expect(status).toBe(200);
  });

  const refused = { status: 413, message: 'the body of the request is larger than 64 KiB' };

  test('of a body is a 413, before any of it came', async () => {
    const large = await connectRaw(plane.url);
    large.send(login(`Content-Length: ${64 * kib + 1}`));
    expect(refusalIn(await large.until('}'))).toEqual(refused);
    large.socket.destroy();
  });

  test('in a body of chunks gets a 413 too', async () => {
    const large = await connectRaw(plane.url);
    large.send(
      `${login('Transfer-Encoding: chunked')}${(64 * kib + 1).toString(16)}\r\n${' '.repeat(64 * kib + 1)}\r\n`,
    );
    expect(refusalIn(await large.until('}'))).toEqual(refused);
    large.socket.destroy();
  });

  test('of a body is not yet 64 KiB of it', async () => {
    const raw = JSON.stringify({ email: 'x@example.net', password: 'x' }).padEnd(64 * kib);
    expect((await plane.call('POST', '/api/auth/login', { raw })).status).toBe(401);
  });
});

test('what is no HTTP is a 400', async () => {
  const strange = await connectRaw(plane.url);
  strange.send('\x16\x03\x01\x00\xa5 hello\r\n\r\n');
  expect(refusalIn(await strange.ended())).toEqual({ status: 400, message: 'this is no HTTP request' });
});
