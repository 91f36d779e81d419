import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { readdir, readFile, truncate } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Process } from '../lab/process.ts';
import { AdminShell } from './admin-shell.ts';

const MiB = 1024 * 1024;

/** A request as the service received it. */
interface Recorded {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

let shell: AdminShell;
let url: string;
let recorded: Recorded[] = [];
/** What the service does with a request, once it has all of it. */
let answer: (response: ServerResponse) => void;
/** The program, while its memory is watched. */
let watched: Process | undefined;
let peakBytes = 0;

const server = createServer(async (request, response) => {
  const { method = '', url: path = '', headers } = request;
  const chunks: Buffer[] = [];
  for await (const chunk of request) {
    // What is sent to be weighed is not kept: this process would only weigh itself.
    if (watched === undefined) chunks.push(chunk);
  }
  if (watched?.pid !== undefined) {
    const status = readFileSync(`/proc/${watched.pid}/status`, 'utf8');
    peakBytes = Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
  }
  recorded.push({ method, path, headers, body: Buffer.concat(chunks) });
  answer(response);
});

beforeAll(async () => {
  shell = await AdminShell.open();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/tenant`;
});

afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await shell?.close();
});

beforeEach(() => {
  recorded = [];
  watched = undefined;
  answer = reply(200, '{"data":{"ok":true}}');
});

function reply(status: number, body: string | Buffer, headers: Record<string, string> = {}) {
  return (response: ServerResponse) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
  };
}

const login = () => ({ CPN_API_URL: url, CPN_API_TOKEN: 'token-sample' });
const call = (...args: string[]) => shell.cpn(['api', ...args], { env: login() });

describe('a reply', () => {
  it('goes to stdout as it came', async () => {
    expect(await call('get', '/api/x')).toMatchObject({ exitCode: 0, stdout: '{"data":{"ok":true}}', stderr: '' });
    expect(recorded).toMatchObject([
      {
        method: 'GET',
        path: '/tenant/api/x',
        headers: { authorization: 'Bearer token-sample', accept: 'application/json' },
      },
    ]);
    const { stdout } = await call('GET', '/api/x', '--include');
    expect(stdout).toMatch(/^HTTP\/1\.1 200 OK\ncontent-type: application\/json\n.*\n\n\{"data"/s);
  });

  it('goes to a file, whole or not at all, however long it is', async () => {
    const body = randomBytes(20 * MiB);
    answer = reply(200, body, { 'content-type': 'application/octet-stream' });
    const file = join(shell.folder, 'reply');
    expect((await call('GET', '/api/x', '--output', file)).stdout).toBe('');
    expect(hash(await readFile(file))).toBe(hash(body));
    const held = await call('GET', '/api/x');
    expect([held.exitCode, held.stderr]).toEqual([1, expect.stringContaining('is longer than 16777216 bytes')]);

    answer = (response) => {
      response.writeHead(200, { 'content-length': '1000' }).write('begun', () => response.destroy());
    };
    const before = await readdir(shell.folder);
    expect((await call('GET', '/api/x', '--output', file, '--timeout', '1')).exitCode).toBe(5);
    expect([await readdir(shell.folder), statSync(file).size]).toEqual([before, 20 * MiB]);
  });

  it('goes to a device as to a file, and is not requested where it cannot be saved', async () => {
    expect((await call('GET', '/api/x', '--output', '/dev/null')).exitCode).toBe(0);
    // What it is written to stays a device.
    expect(statSync('/dev/null').isCharacterDevice()).toBe(true);
    expect(recorded).toHaveLength(1);
    for (const place of ['/nowhere/file', shell.folder]) {
      const { exitCode, stderr } = await call('POST', '/api/x', '--output', place);
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining(`--output names ${place}, `)]);
    }
    expect(recorded).toHaveLength(1);
  });

  it('that does not fit on the disk is reported', async () => {
    const { exitCode, stderr } = await call('GET', '/api/x', '--output', '/dev/full');
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('cannot write /dev/full: no space left')]);
    expect(recorded).toHaveLength(1);
  });

  it('that is binary is untouched, and kept from a terminal', async () => {
    answer = reply(200, Buffer.from('\x00\x1b[2J'), { 'content-type': 'image/png' });
    expect((await call('GET', '/api/x')).stdout).toBe('\x00\x1b[2J');
    const shown = await shell.type(['api', 'GET', '/api/x'], [], login());
    expect([shown.exitCode, shown.stdout]).toEqual([
      1,
      expect.stringMatching(/^the reply is binary \(5 B\).*--output FILE/),
    ]);
  });
});

describe('a failure', () => {
  it.each<[number, number, RegExp]>([
    [401, 4, /GET \/api\/x was refused \(401\): no \(name: bad\); replace the token in CPN_API_TOKEN/],
    [403, 4, /refused \(403\): no/],
    [404, 4, /refused \(404\): no .*docs\/api\/openapi\.json/],
    [422, 4, /refused \(422\): no/],
    [307, 1, /is a redirect \(307\) .*redirects are not followed/],
  ])('of status %i exits with %i', async (status, code, message) => {
    answer = reply(status, '{"message":"no","errors":{"name":["bad"]}}', { location: '/elsewhere' });
    const { exitCode, stderr, stdout } = await call('GET', '/api/x?secret=canary');
    expect([exitCode, stderr.split('\n').length, stderr]).toEqual([code, 2, expect.stringMatching(message)]);
    // The body ends its line, so that the error has one of its own in a log of both.
    expect(stdout).toBe(status === 307 ? '' : '{"message":"no","errors":{"name":["bad"]}}\n');
    expect(stderr).not.toContain('canary');
    expect(recorded).toHaveLength(1);
  });

  it('of the service is not tried again where that could do it twice', async () => {
    answer = reply(500, '{}');
    const { exitCode, stderr } = await call('POST', '/api/x');
    expect([exitCode, stderr]).toEqual([
      5,
      expect.stringContaining('it may have succeeded: check before you repeat it'),
    ]);
    expect(recorded).toHaveLength(1);
  });

  it('is none when the second attempt to read succeeds', async () => {
    const [busy, done] = [reply(503, ''), answer];
    answer = (response) => (recorded.length === 1 ? busy : done)(response);
    const { exitCode, stdout, stderr } = await call('GET', '/api/x');
    expect([exitCode, stdout]).toEqual([0, '{"data":{"ok":true}}']);
    expect(stderr).toMatch(/^· it answered 503 \(Service Unavailable\); retrying in \d+ ms\n$/);
  });

  it.each([
    [['GET', 'https://evil.example/api/x'], /is a full URL/],
    [['GET', '//evil.example/api/x'], /is a full URL/],
    [['GET', '/../x'], /leads out of the base address/],
    [['BREW', '/api/x'], /METHOD "BREW" must be one of GET/],
    [['GET', '/api/x', '--header', 'Authorization: x'], /cannot be set/],
    [['POST', '/api/x', '--form', 'file=@/nowhere'], /--form file names \/nowhere/],
    [['GET'], /needs an argument/],
  ])('of usage is seen before anything is sent: %j', async (args, message) => {
    const { exitCode, stdout, stderr } = await call(...args);
    expect([exitCode, stdout, stderr]).toEqual([2, '', expect.stringMatching(message)]);
    expect(recorded).toHaveLength(0);
  });
});

describe('a body', () => {
  it('is made of fields', async () => {
    const file = await shell.write('secret', 's3cret');
    const flags = [
      '--field',
      'analytics=true',
      '--field',
      `password=@${file}`,
      '--raw-field',
      'n=1',
      '--field',
      'a[]=x,y',
    ];
    await call('PUT', '/api/gdpr/consent', ...flags);
    expect(recorded[0]?.headers['content-type']).toBe('application/json');
    expect(JSON.parse(String(recorded[0]?.body))).toEqual({ analytics: true, password: 's3cret', n: '1', a: ['x,y'] });
  });

  it('is a query with GET', async () => {
    await call('GET', '/api/files?page=2', '--field', 'zone_id=3', '--field', 'x=a b&c');
    expect(recorded[0]?.path).toBe('/tenant/api/files?page=2&zone_id=3&x=a+b%26c');
  });

  it('is a file or standard input, with fields as the query', async () => {
    const file = await shell.write('body.json', '{"password": "x"}\n');
    await call('DELETE', '/api/gdpr/account', '--input', file, '--field', 'sure=yes');
    await shell.cpn(['api', 'POST', '/api/x', '--input', '-', '--header', 'Content-Type: text/csv'], {
      env: login(),
      input: 'a,b',
    });
    expect(recorded.map(({ path, body, headers }) => [path, String(body), headers['content-type']])).toEqual([
      ['/tenant/api/gdpr/account?sure=yes', '{"password": "x"}\n', 'application/json'],
      ['/tenant/api/x', 'a,b', 'text/csv'],
    ]);
  });
});

describe('an upload', () => {
  it('carries a file of 20 MiB and what goes with it', async () => {
    const content = randomBytes(20 * MiB);
    const file = await shell.write('site "one".zip', content);
    answer = reply(201, '{"data":{"uuid":"u"}}');
    const fields = ['--field', 'zone_id=3', '--form', 'storage_nodes[]=7', '--form', 'storage_nodes[]=8'];
    const { stdout } = await call('POST', '/api/files', '--form', `file=@${file}`, ...fields);
    expect(stdout).toBe('{"data":{"uuid":"u"}}');
    const [{ headers, body } = { headers: {}, body: Buffer.alloc(0) }] = recorded;
    expect(headers['content-length']).toBe(String(body.length));
    const form = await new Response(body, { headers: { 'content-type': headers['content-type'] ?? '' } }).formData();
    expect([form.get('zone_id'), form.getAll('storage_nodes[]')]).toEqual(['3', ['7', '8']]);
    const sent = form.get('file') as File;
    expect(sent.name).toBe('site "one".zip');
    expect(hash(Buffer.from(await sent.arrayBuffer()))).toBe(hash(content));
  });

  it.each([
    ['of a form', ['POST', '/api/files', '--form', 'file=@']],
    ['as it stands', ['PUT', '/api/files/u', '--input', '']],
  ])('%s is never held in memory', async (_, args) => {
    const large = await shell.write('large', '');
    await truncate(large, 400 * MiB);
    watched = shell.spawn(['api', ...args.slice(0, -1), `${args.at(-1)}${large}`], { env: login() });
    expect((await watched.exited).exitCode).toBe(0);
    // What the program takes for itself is about 120 MiB.
    expect(peakBytes).toBeGreaterThan(30 * MiB);
    expect(peakBytes).toBeLessThan(300 * MiB);
  });

  it('that is refused has the reason', async () => {
    const file = await shell.write('refused', randomBytes(MiB));
    answer = reply(413, '{"message":"too large"}');
    const { exitCode, stderr } = await call('POST', '/api/files', '--form', `file=@${file}`);
    expect([exitCode, stderr]).toEqual([4, expect.stringContaining('POST /api/files was refused (413): too large')]);
  });
});

const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

describe('a list in pages', () => {
  /** Answers with the pages by the paths that lead to them. */
  const answerPages = (pages: Record<string, (response: ServerResponse) => void>) => {
    answer = (response) => (pages[recorded.at(-1)?.path ?? ''] ?? reply(404, '{"message":"no such page"}'))(response);
  };

  it('is followed to its end, a line for each page', async () => {
    const [first, second] = [
      '{"data":[1],"links":{"next":"/tenant/api/x?page=2"}}',
      '{"data":[12345678901234567890]}\n',
    ];
    answerPages({ '/tenant/api/x?a=b': reply(200, first), '/tenant/api/x?page=2': reply(200, second) });
    const outcome = await call('GET', '/api/x', '--paginate', '--field', 'a=b', '--header', 'X-Mark: 1');
    expect(outcome).toMatchObject({ exitCode: 0, stdout: `${first}\n${second}`, stderr: '' });
    expect(recorded.map(({ headers }) => [headers['x-mark'], headers.authorization])).toEqual(
      Array(2).fill(['1', 'Bearer token-sample']),
    );
  });

  it('becomes one list where its pages are lists', async () => {
    const link = (page: number) => ({ link: `<${url}/api/x?page=${page}>; rel="next"` });
    answerPages({
      '/tenant/api/x': reply(200, '[{"id": 12345678901234567890}]', link(2)),
      '/tenant/api/x?page=2': reply(200, '[]', link(3)),
      '/tenant/api/x?page=3': reply(200, ' ["b", 2]\n'),
    });
    const merged = '[{"id": 12345678901234567890},"b", 2]\n';
    expect(await call('GET', '/api/x', '--paginate')).toMatchObject({ exitCode: 0, stdout: merged });
    const file = join(shell.folder, 'list.json');
    expect(await call('GET', '/api/x', '--paginate', '--output', file)).toMatchObject({ exitCode: 0, stdout: '' });
    expect(await readFile(file, 'utf8')).toBe(merged);
    expect((await call('GET', '/api/x', '--paginate', '--include')).stdout.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(3);
  });

  it('ends with the page that is refused, and goes to no other host', async () => {
    answerPages({ '/tenant/api/x': reply(200, '{"links":{"next":"?page=2"}}') });
    expect(await call('GET', '/api/x', '--paginate')).toMatchObject({ exitCode: 4 });
    answer = reply(200, '{"links":{"next":"http://127.0.0.1:9/tenant/api/x"}}');
    const { exitCode, stderr } = await call('GET', '/api/x', '--paginate');
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('names a next page at 127.0.0.1:9')]);
  });

  it('is read with GET alone', async () => {
    const { exitCode, stderr } = await call('POST', '/api/x', '--paginate');
    expect([exitCode, stderr, recorded]).toEqual([2, expect.stringContaining('--paginate is for GET'), []]);
  });
});

describe('without a login', () => {
  const open = { get: { security: [] } };
  const closed = { get: { security: [{ session: [] }] } };
  const anonymous = (...args: string[]) => shell.cpn(['api', ...args], { env: { CPN_API_URL: url } });
  const describing = (document: object | null) => {
    answer = (response) => {
      const isDescription = recorded.at(-1)?.path === '/tenant/docs/api/openapi.json';
      const described = document === null ? reply(404, '{}') : reply(200, JSON.stringify(document));
      (isDescription ? described : reply(200, '{"open":true}'))(response);
    };
  };

  it.each<[string, string[], object]>([
    ['needs none', ['GET', '/api/health'], { paths: { '/api/health': open } }],
    ['needs none, in a path with parameters', ['GET', '/api/x/7?a=b'], { paths: { '/api/x/{id}': open } }],
    ['needs none, under the base address', ['HEAD', '/api/health'], { paths: { '/tenant/api/health': open } }],
    ['may have one', ['GET', '/a'], { paths: { '/a': { get: { security: [{ session: [] }, {}] } } } }],
    ['stands in a description without any', ['GET', '/a'], { paths: { '/a': { get: {} } } }],
  ])('an operation that %s goes without a token', async (_what, args, document) => {
    describing(document);
    expect(await anonymous(...args)).toMatchObject({ exitCode: 0, stderr: '' });
    expect(recorded.map(({ headers }) => headers.authorization)).toEqual([undefined, undefined]);
  });

  it.each<[string, object | null]>([
    ['needs one', { paths: { '/api/x/y': closed, '/api/x/{id}': open } }],
    ['needs one like all', { security: [{ session: [] }], paths: { '/api/x/y': { get: {} } } }],
    ['is not described', { paths: { '/api/x': open, '/api/x/y': { post: { security: [] } } } }],
    ['is of a service without a description', null],
  ])('an operation that %s is not sent', async (_what, document) => {
    describing(document);
    const { exitCode, stderr } = await anonymous('GET', '/api/x/y');
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(`not logged in at ${url}`)]);
    expect(recorded.map(({ path }) => path)).toEqual(['/tenant/docs/api/openapi.json']);
  });
});
