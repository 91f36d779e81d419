import { describe, expect, test } from 'vitest';
import { connectAdminService } from '../../../src/api/admin-service.ts';
import type { ReplyHead } from '../../../src/api/http/connection.ts';
import { findOtherHost } from '../../../src/api/http/interception.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import type { Refused } from '../../../src/core/errors/index.ts';
import { connectPeerService } from '../described-service.ts';
import { failureOf, unhurried } from '../samples.ts';
import { brokenOff, bytes, json, type Reply, serve } from '../server.ts';

const token = new Secret('token-sample');

async function refusalOf(reply: Reply): Promise<Refused> {
  const { address } = await serve(reply);
  return (await failureOf(connectPeerService(address).readMap(7, token, null))) as Refused;
}

describe('a refusal', () => {
  test.each<[unknown, object | null]>([
    [
      { id: 7, nonce: 'n-1' },
      { id: 7, nonce: 'n-1' },
    ],
    [
      { id: 'a-b', nonce: 'n', more: 1 },
      { id: 'a-b', nonce: 'n' },
    ],
    [
      { id: 'a'.repeat(128), nonce: 'n'.repeat(128) },
      { id: 'a'.repeat(128), nonce: 'n'.repeat(128) },
    ],
    [{ id: 'a'.repeat(129), nonce: 'n' }, null],
    [{ id: 7, nonce: 'n'.repeat(129) }, null],
    [{ id: 7.5, nonce: 'n' }, null],
    [{ id: null, nonce: 'n' }, null],
    [{ nonce: 'n' }, null],
    [{ id: 7 }, null],
    [{ id: 7, nonce: '' }, null],
    [{ id: 7, nonce: 'a b' }, null],
    [{ id: 7, nonce: 7 }, null],
    [[7, 'n'], null],
    ['7', null],
    [null, null],
  ])('with 410 states the deletion %j as %j, and no other status does', async (deleted, stated) => {
    expect((await refusalOf(json(410, { message: 'gone', deleted }))).deleted).toEqual(stated);
    for (const status of [403, 404])
      expect((await refusalOf(json(status, { message: 'gone', deleted }))).deleted).toBeNull();
  });

  test('names the first twenty of its fields, printable and short', async () => {
    const errors = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`f${n}\u001b${'x'.repeat(99)}`, ['no']]));
    const { fields } = await refusalOf(json(422, { message: 'no', errors }));
    expect(fields).toHaveLength(20);
    expect(fields[19]).toEqual({ field: expect.stringMatching(/^f19/), rule: 'no' });
    for (const { field } of fields) expect(field).toMatch(/^[\x20-\x7e\ufffd]{1,40}$/);
    for (const odd of ['no', ['no'], null])
      expect((await refusalOf(json(422, { message: 'no', errors: odd }))).fields).toEqual([]);
  });

  test('of plain http with a reason of the service names no other scheme', async () => {
    expect((await refusalOf(json(400, { message: 'no such page' }))).message).not.toContain('http was tried');
    expect((await refusalOf(bytes(400, 'no', { 'content-type': 'text/plain' }))).message).toContain('http was tried');
    expect((await refusalOf(bytes(413, 'no', { 'content-type': 'text/plain' }))).message).not.toContain(
      'http was tried',
    );
  });

  test('has the hint of the service instead of another one with 403 alone', async () => {
    const message = 'the peer is suspended; an admin resumes it';
    expect((await refusalOf(json(403, { message }))).message).toMatch(/resumes it$/);
    expect((await refusalOf(json(404, { message }))).message).toMatch(/resumes it; the tunnel stays/);
  });

  test('has a full stop less than the service wrote, and none within', async () => {
    expect((await refusalOf(json(409, { message: 'One. Two.' }))).message).toContain('(409): One. Two; ');
  });
});

test.each(['application/json', 'application/json; charset=utf-8', 'application/json;charset=utf-8'])(
  'a service says why it is busy by the type %s',
  async (type) => {
    const { address } = await serve(bytes(503, '{"message":"the disk is full"}', { 'content-type': type }));
    const { options } = unhurried({ attempts: 1 });
    const { message } = await failureOf(connectPeerService(address, options).readMap(7, token, null));
    expect(message).toContain('is busy: the disk is full');
  },
);

describe('a reply that need not have content', () => {
  const type = (name: string) => ({ 'content-type': name });
  test.each<[string, Reply, string | null]>([
    ['204', (response) => response.writeHead(204).end(), null],
    ['204 of a type', (response) => response.writeHead(204, type('text/html')).end(), null],
    ['200 without a type', (response) => response.writeHead(200).end('x'), null],
    ['200 with JSON', json(200, { data: 7 }), null],
    ['200 by the type of JSON', bytes(200, '', type('application/problem+json; x=y')), null],
    ['200 without a body, of another type', bytes(200, '', type('application/octet-stream')), null],
    ['200 with a body of another type', bytes(200, 'x', type('application/octet-stream')), 'BadReply'],
    ['200 with text', bytes(200, 'x', type('text/plain')), 'BadReply'],
    ['200 with empty text', bytes(200, '', type('text/plain; charset=utf-8')), 'BadReply'],
    ['200 with empty HTML', bytes(200, '', type('text/html')), 'BadReply'],
    ['200 with a page', bytes(200, '<html>', type('text/html')), 'Intercepted'],
    ['201', (response) => response.writeHead(201).end(), null],
    ['205', (response) => response.writeHead(205).end(), null],
    ['304', (response) => response.writeHead(304).end(), 'BadReply'],
  ])('is a deletion that is done, or not: %s', async (_, reply, failure) => {
    const { address } = await serve(reply);
    const [outcome] = await Promise.allSettled([connectAdminService(address, token).deleteNetwork(7)]);
    expect(outcome.status === 'fulfilled' ? null : outcome.reason.name).toBe(failure);
  });

  test('is asked for again where it breaks off', async () => {
    const { address, asked } = await serve(brokenOff, json(200, { data: null }));
    expect(await connectPeerService(address, unhurried().options).removePeer(7, 3, token)).toBe(true);
    expect(asked).toHaveLength(2);
  });
});

test.each<[string, string | string[] | undefined, string | null]>([
  ['https://cp.example.net/api/x', 'https://cp.example.net:8443/y', null],
  ['https://cp.example.net/api/x', 'http://cp.example.net/y', null],
  ['https://cp.example.net/api/x', '/y', null],
  ['https://cp.example.net/api/x', '//portal.example.net/y', 'portal.example.net'],
  ['https://cp.example.net/api/x', ['https://portal.example.net:8443/', '/y'], 'portal.example.net:8443'],
  ['https://cp.example.net/api/x', 'ftp://portal.example.net/y', null],
  ['https://cp.example.net/api/x', 'http://[', null],
  ['https://cp.example.net/api/x', undefined, null],
  ['unix:/run/cpn.sock:/api/x', 'http://localhost/y', null],
  ['unix:/run/cpn.sock:/api/x', 'http://portal.example.net/y', 'portal.example.net'],
])('a redirect from %s to %j leads to another host, or not', (url, location, host) => {
  const response = { headers: { location } } as unknown as ReplyHead;
  expect(findOtherHost(response, { url, secrets: [], maxBytes: 1 })).toBe(host);
});
