import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { readDescription } from '../../src/api/description.ts';
import { describeForeign } from '../plain/foreign-description.ts';
import { json, startForeignService } from '../plain/foreign-service.ts';
import { hungUp, silent } from './server.ts';

describe('the description of a service', () => {
  it('is read without a credential, and once more only if it has changed', async () => {
    const service = await startForeignService({
      description: (response, { headers }) => {
        if (headers['if-none-match'] === 'W/"a"') response.writeHead(304).end();
        else json(response, 200, describeForeign({ removal: true }), { etag: 'W/"a"' });
      },
    });
    expect(await readDescription(service.address, null)).toEqual({ features: ['peer-removal'], etag: 'W/"a"' });
    expect(await readDescription(service.address, 'W/"a"')).toBeNull();
    expect(service.received.map(({ headers }) => headers.authorization)).toEqual([undefined, undefined]);
    expect(service.requests).toEqual(['GET /docs/api/openapi.json', 'GET /docs/api/openapi.json']);
  });

  it('is one without an ETag that could be sent back', async () => {
    const description = (etag: string) => (response: never) => json(response, 200, describeForeign(), { etag });
    for (const etag of ['a', '"a b"', `"${'a'.repeat(200)}"`]) {
      const service = await startForeignService({ description: description(etag) });
      expect(await readDescription(service.address, null)).toEqual({ features: [], etag: null });
    }
  });

  it.each<[string, object | null, string]>([
    ['that is not there', null, 'was refused (404)'],
    ['that is no such thing', { data: [] }, 'is not an OpenAPI description'],
  ])('%s is an error that says so', async (_, description, problem) => {
    const service = await startForeignService({ description });
    await expect(readDescription(service.address, null)).rejects.toThrow(problem);
  });

  it.each([
    ['of 10 MB', Buffer.from(JSON.stringify({ paths: {}, padding: 'x'.repeat(10_000_000) })), {}],
    ['that inflates to 100 MB', gzipSync(Buffer.alloc(100_000_000, ' ')), { 'content-encoding': 'gzip' }],
  ])('%s is read no further than its bound', async (_, body, headers) => {
    const service = await startForeignService({
      description: (response) => response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(body),
    });
    await expect(readDescription(service.address, null)).rejects.toThrow('is longer than 4194304 bytes');
  });

  it('that is a million levels deep is none of use', async () => {
    const deep = `{"paths":{},"x":${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}}`;
    const service = await startForeignService({
      description: (response) => response.writeHead(200, { 'content-type': 'application/json' }).end(deep),
    });
    expect(await readDescription(service.address, null)).toEqual({ features: [], etag: null });
  });

  it.each([
    ['never comes', silent],
    ['breaks off', hungUp],
  ])('that %s is given up', async (_, description) => {
    const service = await startForeignService({ description: (response) => description(response, {} as never) });
    const reading = readDescription(service.address, null, { deadlineMs: 100, attempts: 2, random: () => 0 });
    await expect(reading).rejects.toThrow('is unreachable');
  });
});
