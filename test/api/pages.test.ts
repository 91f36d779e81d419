import { describe, expect, test } from 'vitest';
import { connectAdminService } from '../../src/api/admin-service.ts';
import { readPages } from '../../src/api/pages.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { BadReply } from '../../src/core/errors/index.ts';
import { failureOf } from './samples.ts';
import { json, serve } from './server.ts';

const token = new Secret('token-canary');
const user = (id: number) => ({ id, email: `u${id}@example.net`, role: 'admin', created_at: '2026-03-01T12:00:00Z' });

/** What a foreign service says of its pages: of page `number` out of three, at `path`. */
type Respond = (number: number, path: string, base: string) => { body?: object; headers?: Record<string, string> };

/** Services as their own documents describe them, each with two users a page and three pages. */
const services: Record<string, Respond> = {
  'a Laravel resource collection': (number, path, base) => ({
    body: {
      links: { first: `${base}${path}?page=1`, next: number < 3 ? `${base}${path}?page=${number + 1}` : null },
      meta: { current_page: number, last_page: 3, per_page: 2, total: 5 },
    },
  }),
  'a Laravel paginator': (number, path, base) => ({
    body: {
      ...{ current_page: number, last_page: 3, links: [{ url: null, label: 'x', active: false }] },
      next_page_url: number < 3 ? `${base}${path}?page=${number + 1}` : null,
    },
  }),
  'JSON:API links': (number, path) => ({
    body: { links: { next: number < 3 ? { href: `${path}?page=${number + 1}` } : null } },
  }),
  'HAL links': (number) => ({ body: number < 3 ? { _links: { next: { href: `?page=${number + 1}` } } } : {} }),
  'RFC 8288 links': (number, path, base) => ({
    headers: {
      link: [
        `<${base}${path}?page=1>; rel="first"; title="a, b"`,
        ...(number < 3 ? [`<${base}${path}?page=${number + 1}&n=a,b>; title=x; rel="last next"`] : []),
      ].join(', '),
    },
  }),
  'page numbers alone': (number) => ({ body: { meta: { current_page: number, last_page: 3 } } }),
  'a last page alone': () => ({ body: { meta: { last_page: 3 } } }),
};

async function serveUsers(respond: Respond, prefix = '') {
  return serve((response, asked) => {
    const { pathname, searchParams, origin } = new URL(asked.path, `http://${asked.headers.host}`);
    const number = Number(searchParams.get('page') ?? 1);
    const { body = {}, headers = {} } = respond(number, pathname, origin);
    const ids = number < 3 ? [2 * number - 1, 2 * number] : [5];
    const found = asked.headers.authorization === 'Bearer token-canary' && pathname === `${prefix}/api/users`;
    json(found ? 200 : 404, { data: ids.map(user), ...body }, headers)(response, asked);
  });
}

describe('a list in pages', () => {
  test.each(Object.keys(services))('of %s is read whole', async (name) => {
    const { address, asked } = await serveUsers(services[name] as Respond);
    const users = await connectAdminService(address, token).listUsers();
    expect(users.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5]);
    expect(asked.map(({ path }) => new URL(path, 'http://x').searchParams.get('page'))).toEqual([null, '2', '3']);
  });

  test('is read below a base address that has a path', async () => {
    const { url } = await serveUsers(services['a Laravel resource collection'] as Respond, '/vpn');
    const users = await connectAdminService({ url: `${url}/vpn`, insecureHttp: false }, token).listUsers();
    expect(users).toHaveLength(5);
  });

  test('keeps the query of its first page, where the service tells a number alone', async () => {
    const { address, asked } = await serve(json(200, { data: [], meta: { last_page: 2 } }));
    await connectAdminService(address, token).listKeys(7, { all: true });
    expect(asked.map(({ path }) => path)).toEqual([
      '/api/networks/7/enrollment-keys?all=true',
      '/api/networks/7/enrollment-keys?all=true&page=2',
    ]);
  });

  test('is read by https, where a service behind a proxy names its next page with http', async () => {
    const paths: string[] = [];
    const read = async (path: string) => {
      paths.push(path);
      const links = { next: paths.length < 2 ? 'http://cp.example.net/vpn/api/users?page=2' : null };
      return { body: { links }, headers: {}, size: 1 };
    };
    const service = { base: new URL('https://cp.example.net/vpn/'), secrets: [] };
    for await (const _ of readPages(service, '/api/users', read));
    expect(paths).toEqual(['/api/users', '/api/users?page=2']);
  });

  test.each([
    {},
    { links: null, meta: null },
    { links: 7, meta: [3] },
    { links: { next: null } },
    { links: { next: '' } },
    { links: { next: 2 }, meta: { last_page: 'x' } },
    { meta: { current_page: 3, last_page: 3 } },
  ])('has one page where the service says %j', async (body) => {
    const { address, asked } = await serve(json(200, { data: [user(1)], ...body }));
    expect(await connectAdminService(address, token).listUsers()).toHaveLength(1);
    expect(asked).toHaveLength(1);
  });
});

describe('a next page that is not read', () => {
  test('is at another address, which gets no request', async () => {
    const other = await serve(json(200, { data: [] }));
    const { address } = await serve(json(200, { data: [user(1)], links: { next: `${other.url}/api/users?page=2` } }));
    const failure = await failureOf(connectAdminService(address, token).listUsers());
    expect(failure).toBeInstanceOf(BadReply);
    expect(failure.message).toContain(`names a next page at ${new URL(other.url).host}`);
    expect(other.asked).toHaveLength(0);
  });

  test.each([
    ['at another host', '//elsewhere.example.net/api/users', 'at elsewhere.example.net, which'],
    ['at a host that repeats the token', 'https://token-canary.example.net/', 'at [secret].example.net, which'],
    ['at no host', 'data:application/json,[]', 'at , which'],
    ['no address', 'http://[', 'that is not a URL'],
    ['an endless address', `?after=${'x'.repeat(5000)}`, 'that is not a URL'],
    ['above the base address', '/api/users', 'outside of the base address'],
    ['at a path that only begins like that of the base address', '/vpn-other/api/users', 'outside of the base address'],
    ['the base address alone', '/vpn', 'outside of the base address'],
    ['above the base address, by dots', '../../other', 'outside of the base address'],
    ['the same', '/vpn/api/users', 'that was read before'],
  ])('is %s', async (_, next, problem) => {
    const { url, asked } = await serve(json(200, { data: [user(1)], links: { next } }));
    const service = connectAdminService({ url: `${url}/vpn`, insecureHttp: false }, token);
    const failure = await failureOf(service.listUsers());
    expect(failure).toBeInstanceOf(BadReply);
    expect(failure.message).toContain(`names a next page ${problem}`);
    expect(asked).toHaveLength(1);
  });

  test('was read before, by a service that ignores the number', async () => {
    const { address, asked } = await serve(json(200, { data: [user(1)], meta: { current_page: 1, last_page: 9 } }));
    const failure = await failureOf(connectAdminService(address, token).listUsers());
    expect(failure.message).toContain('names a next page that was read before');
    expect(asked).toHaveLength(2);
  });
});

describe('a list without an end', () => {
  /** Reads a service that always has another page, of so many bytes. */
  async function readEndless(limits: { pages: number; bytes: number }) {
    const base = new URL('https://cp.example.net/');
    let pages = 0;
    const read = async () => ({ body: { links: { next: `?after=${pages}` } }, headers: {}, size: 100 });
    const reading = (async () => {
      for await (const _ of readPages({ base, secrets: [] }, '/api/x', read, limits)) pages += 1;
    })();
    return { message: (await failureOf(reading)).message, pages };
  }

  test('ends after so many pages, and after so many bytes', async () => {
    const number = await readEndless({ pages: 20, bytes: 1e9 });
    expect(number).toMatchObject({ pages: 20, message: expect.stringContaining('a next page after 20 pages') });
    const size = await readEndless({ pages: 1000, bytes: 1000 });
    expect(size).toMatchObject({ pages: 10, message: expect.stringContaining('have more than 1000 bytes') });
  });

  test('may have a thousand pages, of 64 MiB together', async () => {
    const read = async (count: number, size: number) => {
      let pages = 0;
      const next = async () => {
        pages += 1;
        return { body: { links: { next: pages < count ? `?after=${pages}` : null } }, headers: {}, size };
      };
      const base = new URL('https://cp.example.net/');
      for await (const _ of readPages({ base, secrets: [] }, '/api/x', next));
      return pages;
    };
    const mostBytes = 64 * 1024 * 1024;
    expect([await read(1000, 1), await read(2, mostBytes / 2)]).toEqual([1000, 2]);
    await expect(read(1001, 1)).rejects.toThrow('a next page after 1000 pages');
    await expect(read(2, mostBytes / 2 + 1)).rejects.toThrow(`have more than ${mostBytes} bytes`);
  });

  test('names its next page by at most 4096 characters', async () => {
    const read = async (length: number) => {
      const paths: string[] = [];
      const next = async (path: string) => {
        paths.push(path);
        return { body: paths.length > 1 ? {} : { links: { next: '?a='.padEnd(length, 'x') } }, headers: {}, size: 1 };
      };
      for await (const _ of readPages({ base: new URL('https://x'), secrets: [] }, '/api/x', next));
      return paths.length;
    };
    expect(await read(4096)).toBe(2);
    await expect(read(4097)).rejects.toThrow('that is not a URL');
  });
});
