import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { fastify } from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import type { App } from '../../../src/control-plane/http/app.ts';
import { serveConsole } from '../../../src/control-plane/http/console.ts';
import { sendError } from '../../../src/control-plane/http/error-reply.ts';
import { makeFolder } from '../harness.ts';

/** A console of these assets, as the build writes it. */
function open(assets: Readonly<Record<string, string>>, publicUrls: readonly URL[] = []) {
  const folder = makeFolder();
  mkdirSync(join(folder, 'assets'));
  const write = (path: string, content: string) => {
    writeFileSync(join(folder, path), content);
    writeFileSync(join(folder, `${path}.gz`), gzipSync(content));
  };
  write('index.html', '<!doctype html>');
  for (const [name, content] of Object.entries(assets)) write(`assets/${name}`, content);
  const app = fastify();
  onTestFinished(() => app.close());
  app.setErrorHandler((error, request, reply) => sendError(error, request, reply));
  serveConsole(app as unknown as App, folder, publicUrls);
  return (url: string, headers: Record<string, string> = {}) => app.inject({ url, headers });
}

const html = { accept: 'text/html' };

test('each asset has its type, may be kept for good, and is compressed for clients that accept it', async () => {
  const assets = { 'a-1.js': 'let a', 'b-2.css': 'b{}', 'c-3.svg': '<svg/>' };
  const get = open(assets);
  const types = ['text/javascript; charset=utf-8', 'text/css; charset=utf-8', 'image/svg+xml'];
  for (const [index, [name, content]] of Object.entries(assets).entries()) {
    for (const [accepted, isPacked] of [
      ['gzip', true],
      ['br, gzip;q=0.5', true],
      ['gzip;q=0', false],
      ['identity', false],
    ] as const) {
      const { statusCode, headers, rawPayload } = await get(`/assets/${name}`, { 'accept-encoding': accepted });
      const body = isPacked ? gzipSync(content) : Buffer.from(content);
      expect([statusCode, headers['content-encoding'], rawPayload.equals(body)]).toEqual([
        ...[200, isPacked ? 'gzip' : undefined, true],
      ]);
      expect(headers).toMatchObject({
        ...{ 'content-type': types[index], vary: 'accept, accept-encoding' },
        'cache-control': 'public, max-age=31536000, immutable',
      });
    }
  }
});

test('a page that a client has is a 304, which names it and what it depends on', async () => {
  const get = open({ 'a-1.js': 'let a' });
  const { headers, body } = await get('/', html);
  expect([body, headers.etag]).toEqual(['<!doctype html>', expect.stringMatching(/^W\/"[\w-]{22}"$/)]);
  const etag = String(headers.etag);
  for (const known of [etag, etag.replace('W/', ''), `"other", ${etag}`]) {
    const again = await get('/', { ...html, 'if-none-match': known });
    expect([again.statusCode, again.body]).toEqual([304, '']);
    expect(again.headers).toMatchObject({ etag, vary: 'accept, accept-encoding', 'cache-control': 'no-cache' });
  }
  expect((await get('/', { ...html, 'if-none-match': '"other"' })).statusCode).toBe(200);
  expect((await get('/assets/a-1.js')).headers.etag).not.toBe(etag);
});

test('pages are refused at hosts that are not public; clients that accept no page get a greeting anywhere', async () => {
  const get = open({ 'a-1.js': 'let a' }, [new URL('https://cp.test/')]);
  for (const [path, headers, statuses] of [
    ['/', html, [200, 403]],
    ['/assets/a-1.js', {}, [200, 403]],
    ['/', {}, [200, 200]],
    ['/assets/b-2.js', {}, [404, 404]],
  ] as const) {
    const found = [];
    for (const host of ['cp.test', 'evil.test']) found.push((await get(path, { ...headers, host })).statusCode);
    expect([path, found]).toEqual([path, statuses]);
  }
});

test('a file of no known type is an error of the start', () => {
  expect(() => open({ 'a-1.wasm': '' })).toThrow(/no known type: .*a-1\.wasm/);
});
