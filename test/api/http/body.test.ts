import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { BadReply } from '../../../src/core/errors/index.ts';
import { connectPeerService } from '../described-service.ts';
import { failureOf, networkBody, unhurried } from '../samples.ts';
import { brokenOff, bytes, json, type Reply, serve } from '../server.ts';

const token = new Secret('token-sample');
const text = JSON.stringify({ data: networkBody() });

/** Reads a map from a server that answers so, and then, if it is asked again, as it should. */
async function readFrom(reply: Reply, maxBodyBytes = 100_000) {
  const { address, asked } = await serve(reply, json(200, { data: networkBody() }));
  const { options } = unhurried({ maxBodyBytes });
  const read = connectPeerService(address, options).readMap(7, token, null);
  return { read, asked };
}

async function refusalOf(reply: Reply, maxBodyBytes?: number) {
  const { read, asked } = await readFrom(reply, maxBodyBytes);
  const failure = await failureOf(read);
  expect(failure).toBeInstanceOf(BadReply);
  expect(asked).toHaveLength(1);
  return failure.message;
}

describe('a body', () => {
  test.each([
    ['plain', bytes(200, text)],
    ['with a charset', bytes(200, text, { 'content-type': 'application/json; charset=utf-8' })],
    ['of a JSON kind', bytes(200, text, { 'content-type': 'application/vnd.example+json' })],
    ['gzip', bytes(200, gzipSync(text), { 'content-encoding': 'gzip' })],
    ['identity', bytes(200, text, { 'content-encoding': 'identity' })],
    ['201', bytes(201, text)],
  ])('is read when it is %s', async (_, reply) => {
    const { read, asked } = await readFrom(reply);
    expect((await read).map?.peers).toHaveLength(3);
    expect(asked[0]?.headers['accept-encoding']).toBe('gzip');
    expect(asked[0]?.headers.accept).toBe('application/json');
  });

  test('of exactly the cap is read, of a byte more refused', async () => {
    const { read } = await readFrom(bytes(200, text), text.length);
    expect((await read).map?.id).toBe(7);
    expect(await refusalOf(bytes(200, text), text.length - 1)).toContain(`longer than ${text.length - 1} bytes`);
  });

  test('that goes on and on is not read to its end', async () => {
    let sent = 0;
    const endless: Reply = (response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const more = () => {
        while (!response.destroyed) {
          sent += 65_536;
          if (!response.write('a'.repeat(65_536))) return response.once('drain', more);
        }
        return response;
      };
      more();
    };
    expect(await refusalOf(endless)).toContain('longer than 100000 bytes');
    // Socket buffers hold some megabytes beyond what was read.
    expect(sent).toBeLessThan(64 * 1024 * 1024);
  });

  test('that inflates beyond the cap is refused', async () => {
    const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024, 0x20));
    expect(bomb.length).toBeLessThan(100_000);
    expect(await refusalOf(bytes(200, bomb, { 'content-encoding': 'gzip' }))).toContain('longer than 100000 bytes');
  });

  test('has a cap of 16 MiB by default', async () => {
    const { address } = await serve(
      bytes(200, gzipSync(Buffer.alloc(16 * 1024 * 1024 + 1, 0x20)), { 'content-encoding': 'gzip' }),
      bytes(200, gzipSync(Buffer.alloc(16 * 1024 * 1024, 0x20)), { 'content-encoding': 'gzip' }),
    );
    const service = connectPeerService(address);
    expect((await failureOf(service.readMap(7, token, null))).message).toContain('longer than 16777216 bytes');
    expect((await failureOf(service.readMap(7, token, null))).message).toContain('is declared as JSON and is not');
  });

  test.each(['br', 'deflate', 'gzip, gzip', 'zstd'])('in %s, which was not requested, is refused', async (coding) => {
    expect(await refusalOf(bytes(200, text, { 'content-encoding': coding }))).toContain('an encoding other than gzip');
  });

  test.each([
    ['is not gzip', Buffer.from(text)],
    ['is gzip cut short', gzipSync(text).subarray(0, -12)],
  ])('that says gzip and %s is refused', async (_, body) => {
    expect(await refusalOf(bytes(200, body, { 'content-encoding': 'gzip' }))).toContain(
      'is declared as gzip and is not',
    );
  });

  test.each(['', '{', 'no', '{"data": {"id": 7,}}', text.slice(0, -1), `${text}x`, 'NaN'])(
    'that reads %j is not JSON',
    async (body) => {
      expect(await refusalOf(bytes(200, body))).toContain('is declared as JSON and is not');
    },
  );

  test('that is not UTF-8 is not JSON', async () => {
    const body = Buffer.from(text.replace('office', 'of\xffice'), 'latin1');
    expect(await refusalOf(bytes(200, body))).toContain('is declared as JSON and is not');
  });

  test.each(['text/html', 'text/plain; charset=utf-8', 'application/jsonp', 'application/octet-stream'])(
    'of %s is refused, whatever is in it',
    async (type) => {
      const message = await refusalOf(bytes(200, text, { 'content-type': type }));
      expect(message).toContain(`is not JSON but ${type.split(';')[0]}`);
      expect(message).toContain('--api');
    },
  );

  test('without a type is refused', async () => {
    const untyped: Reply = (response) => response.writeHead(200).end(text);
    expect(await refusalOf(untyped)).toContain('a reply without a type');
  });

  test('of no length at all is refused', async () => {
    expect(await refusalOf((response) => response.writeHead(204).end())).toContain('is not JSON');
  });

  test.each([205, 206])('that is said to be no whole one (%i) is refused', async (status) => {
    expect(await refusalOf(bytes(status, text))).toContain('which is not a complete reply');
  });

  test.each(['[]', 'null', '7', '"text"', 'true', '{"data": null}', '{"data": 7}', '{"data": [1]}'])(
    'that is %s instead of an object is refused',
    async (body) => {
      expect(await refusalOf(bytes(200, body))).toMatch(/is not an object|lacks network/);
    },
  );

  test('that breaks off is asked for again', async () => {
    const { read, asked } = await readFrom(brokenOff);
    expect((await read).map?.id).toBe(7);
    expect(asked).toHaveLength(2);
  });

  test('that breaks off between two chunks is asked for again', async () => {
    const cut: Reply = (response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      // Whole JSON, but the last chunk never comes: it cannot be known to be all.
      response.write(text, () => response.destroy());
    };
    const { read, asked } = await readFrom(cut);
    expect((await read).map?.id).toBe(7);
    expect(asked).toHaveLength(2);
  });
});
