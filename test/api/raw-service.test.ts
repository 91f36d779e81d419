import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { ClientOptions } from '../../src/api/http/client-options.ts';
import { connectRawService, type RawReply, type RawRequest } from '../../src/api/raw-service.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { BadReply, DiskFailed, InvalidValue, Refused, Unreachable } from '../../src/core/errors/index.ts';
import { failureOf, unhurried } from './samples.ts';
import { brokenOff, bytes, hungUp, json, type Reply, serve } from './server.ts';

const token = new Secret('token-sample');
const plain = { method: 'GET', path: '/api/x', query: [], headers: {}, body: null, secrets: [] } as const;

async function ask(replies: Reply[], request: Partial<RawRequest> = {}, options: ClientOptions = {}) {
  const server = await serve(...replies);
  const service = connectRawService(server.address, token, { ...unhurried().options, ...options });
  return { ...server, reply: service.send({ ...plain, ...request }) };
}

describe('a request', () => {
  test('carries the bearer, the query and the headers given', async () => {
    const { reply, asked } = await ask([json(200, {})], {
      path: '/api/x?a=1',
      query: [['b[]', '2 3']],
      headers: { accept: 'text/csv', 'if-none-match': '"7"' },
    });
    expect((await reply).status).toBe(200);
    expect(asked).toMatchObject([
      {
        method: 'GET',
        path: '/api/x?a=1&b%5B%5D=2+3',
        headers: { authorization: 'Bearer token-sample', accept: 'text/csv', 'if-none-match': '"7"' },
      },
    ]);
  });

  test.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const)('is made with %s', async (method) => {
    const { reply, asked } = await ask([bytes(204, '')], { method });
    expect([(await reply).bytes.length, asked[0]?.method]).toEqual([0, method]);
  });

  test('carries JSON', async () => {
    const { reply, asked } = await ask([json(201, {})], {
      method: 'POST',
      body: { kind: 'json', value: { a: [1] } },
    });
    await reply;
    expect(asked).toMatchObject([{ body: '{"a":[1]}', headers: { 'content-type': 'application/json' } }]);
  });

  test('goes to no other origin and nowhere out of the base', async () => {
    for (const path of ['//evil.example/x', 'https://evil.example/x', '/x\\y']) {
      const { reply, asked } = await ask([json(200, {})], { path });
      expect(await failureOf(reply)).toBeInstanceOf(InvalidValue);
      expect(asked).toHaveLength(0);
    }
  });

  test('is not redirected', async () => {
    const target = await serve(json(200, {}));
    const { reply, asked } = await ask([bytes(307, '', { location: `${target.url}/x` })]);
    expect(await failureOf(reply)).toBeInstanceOf(BadReply);
    expect([asked.length, target.asked.length]).toEqual([1, 0]);
  });
});

describe('a reply', () => {
  test('comes as it is, whatever it is', async () => {
    const binary = Buffer.from([0, 0xff, 0x0a, 0x1b]);
    const { reply } = await ask([bytes(200, binary, { 'content-type': 'image/png', 'x-a': '1' })]);
    expect(await reply).toMatchObject({ status: 200, json: false, bytes: binary, headers: { 'x-a': '1' } });
  });

  test('is inflated', async () => {
    const packed = gzipSync('{"a":1}');
    const { reply } = await ask([bytes(200, packed, { 'content-encoding': 'gzip' })]);
    expect(await reply).toMatchObject({ json: true, bytes: Buffer.from('{"a":1}') });
  });

  test('is not held beyond the cap, in a sink it is', async () => {
    const long = bytes(200, 'a'.repeat(1000));
    const { reply } = await ask([long], {}, { maxBodyBytes: 999 });
    expect((await failureOf(reply)).message).toContain('is longer than 999 bytes');
    const { sink, taken } = bucket();
    await (await ask([long], { sink }, { maxBodyBytes: 999 })).reply;
    expect(taken.at(-1)?.length).toBe(1000);
  });

  test('of a 304 to If-None-Match is no failure', async () => {
    const { reply } = await ask([bytes(304, '')], { headers: { 'if-none-match': '"7"' } });
    expect((await reply).status).toBe(304);
  });
});

describe('a refusal', () => {
  test('is reported in the words of the service, and its body shown', async () => {
    const shown: RawReply[] = [];
    const { reply } = await ask([json(422, { message: 'no', errors: { name: ['is required'] } })], {
      method: 'POST',
      path: '/api/x?token=canary',
      onRefusal: (refused) => shown.push(refused),
    });
    const failure = await failureOf(reply);
    expect(failure).toBeInstanceOf(Refused);
    expect(failure.message).toContain('POST /api/x was refused (422): no (name: is required)');
    expect(failure.message).not.toContain('canary');
    expect(shown).toMatchObject([{ status: 422, json: true }]);
    expect(Buffer.from(shown[0]?.bytes ?? []).toString()).toBe('{"message":"no","errors":{"name":["is required"]}}');
  });

  test('does not say again what was sent as a secret', async () => {
    const { reply } = await ask([json(401, { message: 'bad token-sample or hunter2' })], {
      secrets: [new Secret('hunter2')],
    });
    expect((await failureOf(reply)).message).not.toMatch(/token-sample|hunter2/);
  });

  test('of a path or a method says where the operations are described', async () => {
    for (const status of [404, 405]) {
      const { reply } = await ask([json(status, {})]);
      expect((await failureOf(reply)).message).toContain('/docs/api/openapi.json');
    }
  });
});

describe('a failure', () => {
  const doubtful: [string, Reply][] = [
    ['500', json(500, {})],
    ['a reply that breaks off', brokenOff],
    ['a connection closed without a reply', hungUp],
  ];

  test.each(doubtful)('by %s is tried again with GET and HEAD, and with nothing else', async (_, failing) => {
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const) {
      // A HEAD has no body that could break off.
      if (method === 'HEAD' && failing === brokenOff) continue;
      const { reply, asked } = await ask([failing, json(200, {})], { method });
      if (method === 'GET' || method === 'HEAD') {
        expect((await reply).status).toBe(200);
      } else {
        expect(await failureOf(reply)).toBeInstanceOf(Unreachable);
        expect(asked).toHaveLength(1);
      }
    }
  });

  test.each([429, 503])('by %i is tried again with every method, the same body too', async (status) => {
    const body = { kind: 'form', parts: [{ name: 'a', path: import.meta.filename }] } as const;
    const { reply, asked } = await ask([json(status, {}), json(200, {})], { method: 'POST', body });
    expect((await reply).status).toBe(200);
    expect(asked[1]?.body).toContain('is tried again with every method');
    expect(asked[1]?.headers['content-length']).toBe(String(Buffer.byteLength(asked[1]?.body ?? '')));
  });

  test('in the middle of a body gives the sink another one', async () => {
    const { sink, taken } = bucket();
    const { reply } = await ask([brokenOff, bytes(200, 'whole')], { sink });
    await reply;
    expect(taken.map(String)).toEqual(['{"data": {', 'whole']);
  });

  test('of the sink is its own, and not tried again', async () => {
    const full = new DiskFailed('write', '/x', Object.assign(new Error(), { code: 'ENOSPC' }));
    const sink = async (body: AsyncIterable<Uint8Array>) => {
      for await (const _ of body) throw full;
    };
    const { reply, asked } = await ask([bytes(200, 'whole')], { sink });
    expect(await failureOf(reply)).toBe(full);
    expect(asked).toHaveLength(1);
  });
});

/** A sink that keeps what came with each attempt. */
function bucket() {
  const taken: Buffer[] = [];
  const sink = async (body: AsyncIterable<Uint8Array>) => {
    const at = taken.push(Buffer.alloc(0)) - 1;
    for await (const chunk of body) taken[at] = Buffer.concat([taken[at] ?? Buffer.alloc(0), chunk]);
  };
  return { taken, sink };
}
