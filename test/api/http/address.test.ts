import dns from 'node:dns';
import { createServer } from 'node:http';
import { inspect } from 'node:util';
import { describe, expect, test, vi } from 'vitest';
import { connectAdminService } from '../../../src/api/admin-service.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { InvalidValue } from '../../../src/core/errors/index.ts';
import { parseServiceAddress } from '../../../src/core/net/service-address.ts';
import { connectPeerService } from '../described-service.ts';
import { networkBody } from '../samples.ts';
import { json, listen, serve } from '../server.ts';

function refusalOf(url: string, insecureHttp = false): InvalidValue {
  try {
    parseServiceAddress(url, insecureHttp);
  } catch (error) {
    return error as InvalidValue;
  }
  throw new Error(`${url} was taken`);
}

describe('parseServiceAddress', () => {
  test.each([
    ['https://cp.example.net', 'https://cp.example.net'],
    ['https://cp.example.net/', 'https://cp.example.net'],
    ['HTTPS://CP.example.net:443/base//', 'https://cp.example.net/base'],
    ['http://localhost:8787', 'http://localhost:8787'],
    ['http://127.8.9.10', 'http://127.8.9.10'],
    ['http://[::1]:8787/base', 'http://[::1]:8787/base'],
  ])('%s is %s', (text, url) => {
    expect(parseServiceAddress(text, false)).toEqual({ url, insecureHttp: false });
  });

  test.each([
    'http://cp.example.net',
    'http://10.0.0.1',
    'http://127.0.0.1.example.net',
    'http://localhost.example.net',
    'http://128.0.0.1',
    'http://[::2]',
    'http://[::ffff:7f00:1]',
  ])('%s is refused as plain http, unless that is allowed', (url) => {
    const refusal = refusalOf(url);
    expect(refusal).toBeInstanceOf(InvalidValue);
    expect(refusal.field).toBe('--api');
    expect(refusal.message).toContain('plain http');
    expect(refusal.message).toContain('--insecure-http');
    expect(parseServiceAddress(url, true).url).toBe(url);
  });

  test.each([
    'cp.example.net',
    'cp.example.net:8787',
    'ftp://cp.example.net',
    'https:cp.example.net',
    'https://',
    '',
    'https://a b',
  ])('%j is no URL', (url) => {
    expect(refusalOf(url, true).message).toContain('is not an http(s) URL');
  });

  test.each([
    'https://user:canary@cp.example.net',
    'https://canary@cp.example.net',
    'https://cp.example.net/?token=canary',
    'https://cp.example.net/#canary',
    'https://user:ca nary canary@cp.example.net',
    'cp.example.net?canary',
    'cpn_canary',
  ])('%s is refused without being repeated', (url) => {
    expect(inspect(refusalOf(url), { depth: 9 })).not.toContain('canary');
  });

  test.each(['https://cp.example.net/?', 'https://cp.example.net/#'])('%s is refused for its empty query', (url) => {
    expect(refusalOf(url).rule).toContain('query');
  });
});

describe('a client', () => {
  test('is not made for an address that nothing may be sent to', () => {
    const address = { url: 'http://10.0.0.1:1', insecureHttp: false };
    expect(() => connectPeerService(address)).toThrow(InvalidValue);
    expect(() => connectAdminService(address, null)).toThrow(InvalidValue);
  });

  test('speaks plain http to an address beyond loopback only when that is allowed', async () => {
    const server = createServer((_, response) => json(200, { data: networkBody() })(response, {} as never));
    const { port, connections } = await listen(server);
    // A name that is no loopback name, whatever it resolves to.
    const url = `http://0.0.0.0:${port}`;
    expect(() => connectPeerService({ url, insecureHttp: false })).toThrow(/plain http/);
    expect(connections()).toBe(0);
    const { map } = await connectPeerService({ url, insecureHttp: true }).readMap(7, new Secret('t'), null);
    expect(map?.id).toBe(7);
  });

  test('keeps the path of the base address', async () => {
    const { url, asked } = await serve(json(200, { data: networkBody() }));
    await connectPeerService({ url: `${url}/base/path`, insecureHttp: false }).readMap(7, new Secret('t'), null);
    expect(asked.map(({ path }) => path)).toEqual(['/base/path/api/networks/7']);
  });
});

test('localhost is this host, whatever the resolver says', async () => {
  const { url, asked } = await serve(json(200, { data: networkBody() }));
  const stolen: unknown[] = [];
  const thief = createServer((request, response) => {
    stolen.push(request.headers.authorization);
    response.end();
  });
  await new Promise<void>((resolve) => thief.listen(Number(new URL(url).port), '127.0.0.2', resolve));
  const elsewhere = (_name: string, { all }: dns.LookupOptions, done: (...answer: unknown[]) => void) =>
    all ? done(null, [{ address: '127.0.0.2', family: 4 }]) : done(null, '127.0.0.2', 4);
  const lookup = vi.spyOn(dns, 'lookup').mockImplementation(elsewhere as never);
  try {
    const address = { url: url.replace('127.0.0.1', 'localhost'), insecureHttp: false };
    await connectPeerService(address).readMap(7, new Secret('token-sample'), null);
  } finally {
    lookup.mockRestore();
    thief.close();
  }
  expect([asked.length, stolen]).toEqual([1, []]);
});
