import { execFileSync } from 'node:child_process';
import { constants } from 'node:fs';
import { mkdir, mkdtemp, open, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import * as admin from '../../../src/cli/admin.ts';
import { readText, saveReply } from '../../../src/cli/api/files.ts';
import { api } from '../../../src/cli/commands/api.ts';
import * as stdout from '../../../src/cli/output/terminal/stdout.ts';
import { DiskFailed } from '../../../src/core/errors/index.ts';
import { type Conduct, json, startForeignService } from '../../plain/foreign-service.ts';
import { runCommand } from '../commands/run-command.ts';

let folder: string;
const at = (name: string) => join(folder, name);
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-call-'));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(folder, { recursive: true });
});

async function call(method: string, path: string, given: object, answers: Conduct['answers'] = {}) {
  const service = await startForeignService({ answers });
  const environment = { CPN_API_TOKEN: 'token', NO_COLOR: '1' };
  const outcome = await runCommand(api, { api: service.url, method, path, ...given }, { environment });
  return { ...outcome, requests: service.requests };
}

const pages: Conduct['answers'] = {
  'GET /api/list': (response) => json(response, 200, [{ id: 1 }], { link: '</api/list?page=2>; rel="next"' }),
  'GET /api/list?page=2': (response) => json(response, 200, [], { link: '</api/list?page=3>; rel="next"' }),
  'GET /api/list?page=3': (response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end('[{"id":12345678901234567},{"id":3}]'),
};

describe('cpn api', () => {
  it.each([
    ['GET', 0],
    ['POST', 1],
    ['DELETE', 1],
  ])('with %s makes sure %i times that the reply is written, which may be shown only once', async (method, times) => {
    const delivered = vi.spyOn(stdout, 'deliver');
    const { exitCode, stdout: text } = await call(
      method,
      '/api/x',
      {},
      {
        [`${method} /api/x`]: (response) => json(response, 200, { a: 1 }),
      },
    );
    expect([exitCode, text, delivered.mock.calls.length]).toEqual([0, '{"a":1}', times]);
  });

  it('checks before any request that the reply can be saved', async () => {
    for (const [output, problem] of [
      [folder, 'is a folder'],
      [at('none/file'), 'cannot be written to (ENOENT)'],
    ] as const) {
      const { error, requests } = await call('GET', '/api/networks', { output });
      expect([error?.message, requests]).toEqual([expect.stringContaining(problem), []]);
    }
  });

  it.each<[object, number]>([
    [{}, 30_000],
    [{ output: 'body' }, 600_000],
    [{ input: 'body' }, 600_000],
    [{ output: 'body', timeout: '5' }, 5_000],
  ])('with %j waits %i ms', async (given, deadline) => {
    await writeFile(at('body'), '{}');
    const opened = vi.spyOn(admin, 'openRaw').mockRejectedValue(new Error('enough'));
    const files = Object.fromEntries(
      Object.entries(given).map(([name, value]) => [name, value === 'body' ? at('body') : value]),
    );
    await call('POST', '/api/x', files);
    expect(opened.mock.calls[0]?.[2]).toBe(deadline);
  });

  it('merges the lists of all pages, empty ones and large ids included', async () => {
    const { stdout: text, requests } = await call('GET', '/api/list', { paginate: true }, pages);
    expect(text).toBe('[{"id":1},{"id":12345678901234567},{"id":3}]\n');
    expect(requests).toHaveLength(3);
    const saved = await call('GET', '/api/list', { paginate: true, output: at('list') }, pages);
    expect([saved.exitCode, await readFile(at('list'), 'utf8')]).toEqual([0, text]);
  });

  it('keeps pages apart with their headers, and those that are no lists', async () => {
    const { stdout: text } = await call('GET', '/api/list', { paginate: true, include: true }, pages);
    expect(text.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(3);
    const saved = await call('GET', '/api/list', { paginate: true, include: true, output: at('list') }, pages);
    expect(saved.stdout.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(3);
    expect(await readFile(at('list'), 'utf8')).toBe('[{"id":1}]\n[]\n[{"id":12345678901234567},{"id":3}]\n');
    const objects = {
      'GET /api/list': ((response) =>
        json(response, 200, { data: [1], links: { next: '/api/list?page=2' } })) as Conduct['answers'][string],
      'GET /api/list?page=2': ((response) => json(response, 200, { data: [2] })) as Conduct['answers'][string],
    };
    expect((await call('GET', '/api/list', { paginate: true }, objects)).stdout.trimEnd().split('\n')).toHaveLength(2);
  });

  it('prints the body of a refusal, and its error behind it', async () => {
    const answers: Conduct['answers'] = { 'GET /api/x': (response) => json(response, 403, { message: 'No.' }) };
    const { stdout: text, error } = await call('GET', '/api/x', {}, answers);
    expect([text, error?.message]).toEqual(['{"message":"No."}\n', expect.stringContaining('was refused')]);
  });

  it('prints no binary reply to a terminal, and exits with 1', async () => {
    const answers: Conduct['answers'] = {
      'GET /api/x': (response) => response.writeHead(200, { 'content-type': 'application/gzip' }).end(gzipSync('x')),
    };
    const wasTerminal = process.stdout.isTTY;
    process.stdout.isTTY = true;
    try {
      const { exitCode, stdout: text, stderr } = await call('GET', '/api/x', {}, answers);
      expect([exitCode, text, stderr]).toEqual([1, '', expect.stringContaining('repeat with --output FILE')]);
      const paged = await call('GET', '/api/x', { paginate: true }, answers);
      expect(paged.exitCode).toBe(1);
    } finally {
      process.stdout.isTTY = wasTerminal;
    }
  });

  it('fetches pages with GET alone', async () => {
    const { error, requests } = await call('POST', '/api/list', { paginate: true });
    expect([error?.message, requests]).toEqual([expect.stringContaining('--paginate is for GET'), []]);
  });
});

describe('a saved reply', () => {
  async function* body(...chunks: (string | Error)[]) {
    for (const chunk of chunks) {
      if (chunk instanceof Error) throw chunk;
      yield Buffer.from(chunk);
    }
  }

  it('replaces a file, also one behind a link, only as a whole', async () => {
    await writeFile(at('real'), 'before');
    await symlink(at('real'), at('link'));
    await expect(saveReply(at('link'), body('half', new Error('cut off')))).rejects.toThrow('cut off');
    expect([await readFile(at('real'), 'utf8'), await readdir(folder)]).toEqual(['before', ['link', 'real']]);
    await saveReply(at('link'), body('one ', 'two'));
    expect([await readFile(at('real'), 'utf8'), (await readdir(folder)).length]).toEqual(['one two', 2]);
    expect(await readFile(at('link'), 'utf8')).toBe('one two');
  });

  it('is written to a pipe directly, and leaves it where the reply fails', async () => {
    execFileSync('mkfifo', [at('pipe')]);
    const reader = await open(at('pipe'), constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      await saveReply(at('pipe'), body('whole'));
      expect((await reader.read(Buffer.alloc(9))).bytesRead).toBe(5);
      await expect(saveReply(at('pipe'), body(new Error('cut off')))).rejects.toThrow('cut off');
      expect([(await stat(at('pipe'))).isFIFO(), await readdir(folder)]).toEqual([true, ['pipe']]);
    } finally {
      await reader.close();
    }
  });

  it('that cannot be opened is a failure of the disk', async () => {
    await expect(saveReply(at('none/file'), body('x'))).rejects.toThrow(DiskFailed);
  });
});

describe('a file of a request', () => {
  it('is text as it stands, with its byte order mark, or refused', async () => {
    await writeFile(at('text'), '\ufeffä\n');
    expect(await readText(at('text'), '--field x')).toBe('\ufeffä\n');
    await writeFile(at('text'), Buffer.from([0xff, 0xfe]));
    await expect(readText(at('text'), '--field x')).rejects.toThrow('is not UTF-8 text');
    await mkdir(at('folder'));
    await expect(readText(at('folder'), '--field x')).rejects.toThrow('cannot be read (EISDIR)');
  });
});
