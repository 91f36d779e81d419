import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readRequest } from '../../../src/cli/api/request.ts';
import { api } from '../../../src/cli/commands/api.ts';
import { Input } from '../../../src/cli/input/input.ts';
import { InvalidValue, WrongUsage } from '../../../src/core/errors/index.ts';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cpn-api-request-'));
  writeFileSync(join(folder, 'text'), 'a\nb\n');
  writeFileSync(join(folder, 'binary'), Buffer.from([0xff, 0xfe]));
  writeFileSync(join(folder, 'large'), '');
  truncateSync(join(folder, 'large'), 17 * 1024 * 1024);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const file = (name: string) => join(folder, name);

const read = (method: string, flags: Record<string, unknown> = {}, path = '/api/x') =>
  readRequest(new Input({ method, path, ...flags }, api.flags, {}));

describe('what is asked for', () => {
  it('is a JSON body made of fields', async () => {
    const { request } = await read('post', { field: ['a=1', `b=@${file('text')}`], 'raw-field': 'c=1' });
    expect(request).toMatchObject({ method: 'POST', path: '/api/x', query: [], headers: {} });
    expect(request.body).toMatchObject({ kind: 'json', value: { a: 1, b: 'a\nb\n', c: '1' } });
  });

  it('is no body without fields', async () => {
    expect((await read('POST')).request.body).toBeNull();
  });

  it.each(['GET', 'HEAD', 'DELETE'])('is a query of %s, in the words given', async (method) => {
    const { request } = await read(method, { field: ['a[]=1', 'a[]=01', 'b=null'] });
    expect(request.body).toBeNull();
    expect(request.query).toEqual([
      ['a[]', '1'],
      ['a[]', '01'],
      ['b', 'null'],
    ]);
  });

  it('is a file as it stands, with fields as the query', async () => {
    const { request, fileBytes } = await read('DELETE', { input: file('text'), field: 'a=1' });
    expect(request.body).toEqual({ kind: 'file', path: file('text'), size: 4 });
    expect([request.query, fileBytes]).toEqual([[['a', '1']], 4]);
  });

  it('is a form of files and texts, with fields as texts', async () => {
    const { request, fileBytes } = await read('POST', {
      form: [`file=@${file('large')}`, 'ids[]=7'],
      field: 'zone_id=3',
    });
    expect(request.body).toEqual({
      kind: 'form',
      parts: [
        { name: 'zone_id', value: '3' },
        { name: 'file', path: file('large') },
        { name: 'ids[]', value: '7' },
      ],
    });
    expect(fileBytes).toBe(17 * 1024 * 1024);
  });

  it('has the headers given, by their names in small letters', async () => {
    const { request } = await read('GET', { header: ['Idempotency-Key: a: b', 'X-Empty:'] });
    expect(request.headers).toEqual({ 'idempotency-key': 'a: b', 'x-empty': '' });
  });

  it('keeps from messages what was read from files', async () => {
    const { request } = await read('POST', { field: [`b=@${file('text')}`, 'c=d'] });
    expect(request.secrets.map((secret) => secret.reveal())).toEqual(['a\nb\n', 'a\nb']);
  });
});

describe('what cannot be asked for', () => {
  it.each<[string, string, () => Record<string, unknown>, RegExp]>([
    ['a method that is none', 'FETCH', () => ({}), /METHOD "FETCH" must be one of GET, HEAD/],
    ['a field that is none', 'POST', () => ({ field: 'name' }), /is not a field/],
    ['a field from no file', 'POST', () => ({ field: 'a=@/nowhere' }), /--field a names \/nowhere, .* \(ENOENT\)/],
    ['a field from a folder', 'POST', () => ({ field: `a=@${folder}` }), /\(EISDIR\)/],
    [
      'a field that is not text',
      'POST',
      () => ({ field: `a=@${file('binary')}` }),
      /not UTF-8 text; send it with --form/,
    ],
    ['a field larger than memory is for', 'POST', () => ({ field: `a=@${file('large')}` }), /more than 16 MiB/],
    ['an upload from no file', 'POST', () => ({ form: 'a=@/nowhere' }), /--form a names \/nowhere, .* \(ENOENT\)/],
    ['an upload of a folder', 'POST', () => ({ form: `a=@${folder}` }), /which is a folder; name a file/],
    ['an upload of a device', 'POST', () => ({ form: 'a=@/dev/zero' }), /not a regular file/],
    ['an endless body', 'POST', () => ({ input: '/dev/zero' }), /--input holds more than 16 MiB/],
    ['a body in two ways', 'POST', () => ({ form: 'a=b', input: 'x' }), /--form and --input exclude each other/],
    ['a body of GET', 'GET', () => ({ input: file('text') }), /--input needs a method with a body; GET has none/],
    ['a form of GET', 'GET', () => ({ form: 'a=b' }), /--form needs a method with a body/],
    ['the type of a form', 'POST', () => ({ form: 'a=b', header: 'content-type: x' }), /cannot be given with --form/],
    [
      'another bearer',
      'GET',
      () => ({ header: 'Authorization: Bearer canary' }),
      /Authorization cannot be set.*CPN_API_TOKEN/,
    ],
    ['another host', 'GET', () => ({ header: 'Host: elsewhere' }), /Host cannot be set/],
    ['a header twice', 'GET', () => ({ header: ['A: 1', 'a: 2'] }), /--header a was given twice/],
    ['two headers in one', 'GET', () => ({ header: 'A: 1\r\nB: canary' }), /is not a header; write NAME: VALUE/],
    ['a header without a name', 'GET', () => ({ header: ': canary' }), /is not a header/],
    ['a header beyond ASCII', 'GET', () => ({ header: 'A: ü' }), /is not a header/],
  ])('%s', async (_what, method, flags, message) => {
    const failure = await read(method, flags()).then(
      () => null,
      (error: unknown) => error,
    );
    expect(failure instanceof WrongUsage || failure instanceof InvalidValue).toBe(true);
    expect((failure as Error).message).toMatch(message);
    expect((failure as Error).message).not.toContain('canary');
  });
});
