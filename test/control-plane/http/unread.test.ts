import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { fastify } from 'fastify';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Caller } from '../../../src/control-plane/domain/caller.ts';
import type { App } from '../../../src/control-plane/http/app.ts';
import { limitUnreadReplies } from '../../../src/control-plane/http/limits.ts';
import { eventually } from '../../lab/eventually.ts';
import { closePlane, makeNetwork, type Plane, startPlane, withDatabase } from '../harness.ts';
import { openWaiting, untilWaiting } from '../push/long-poll.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** More than the kernel takes off the hands of a server whose client does not read. */
const bytes = 12 * 1024 * 1024;

/** A client that requests the networks, and does not read the reply. */
async function ask({ url }: Plane, token: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  socket.write(`GET /api/networks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`);
  await once(socket, 'readable');
  return socket;
}

async function openLarge(limits: { unreadBytes?: number } = {}) {
  const plane = await startPlane({ limits });
  const token = await plane.signIn('owner');
  await makeNetwork(plane, token);
  const description = 'x'.repeat(bytes);
  await withDatabase(plane.dataDir, (db) => db.updateTable('networks').set({ description }).execute());
  return plane;
}

test('a caller who does not read its replies gets no other until it does; others are answered', async () => {
  const plane = await openLarge({ unreadBytes: 1024 * 1024 });
  const [slow, other] = [await plane.signIn('viewer'), await plane.signIn('viewer')];
  const socket = await ask(plane, slow);
  const refused = await plane.call('GET', '/api/auth/me', { token: slow });
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '5']);
  expect(refused.body.message).toBe('too many replies that wait to be read; try again in 5 s');
  expect((await plane.call('GET', '/api/auth/me', { token: other })).status).toBe(200);
  socket.resume();
  await eventually('it is answered again', async () => {
    return (await plane.call('GET', '/api/auth/me', { token: slow })).status === 200;
  });
});

describe('of an unread reply,', () => {
  const user = (userId: number, id: number) => ({ kind: 'user', userId, credential: { kind: 'token', id } }) as Caller;
  const peer = (peerId: number) => ({ kind: 'peer', peerId }) as Caller;

  /** Requests of these callers, of which the first does not read its reply; whether the second is answered. */
  async function isAnswered(path: string, ...callers: (Caller | string)[]): Promise<boolean[]> {
    const app = fastify();
    onTestFinished(() => app.close());
    app.decorateRequest('caller', null);
    app.addHook('onRequest', async (request) => {
      const caller = callers[Number(request.headers.caller)];
      request.caller = typeof caller === 'object' ? caller : null;
    });
    limitUnreadReplies(app as unknown as App, 10);
    const unread = Promise.withResolvers<ServerResponse>();
    app.get('/unread', (_request, reply) => {
      Object.defineProperty(reply.hijack().raw, 'writableLength', { value: 11 });
      unread.resolve(reply.raw);
    });
    app.get('/', async () => 'read');
    app.get('/healthz', { config: { access: 'anyone', isHealthCheck: true } }, async () => 'ok');
    const send = async (url: string, caller: 0 | 1) => {
      const remoteAddress = String(callers[caller]);
      return (await app.inject({ url, headers: { caller: `${caller}` }, remoteAddress })).statusCode === 200;
    };
    // The injection of a reply that is never sent fails.
    send('/unread', 0).catch(() => undefined);
    const reply = await unread.promise;
    const during = await send(path, 1);
    reply.emit('close');
    return [during, await send(path, 1)];
  }

  test.each<[string, Caller | string, Caller | string, string, boolean]>([
    ['its caller', user(1, 1), user(1, 1), '/', false],
    ['its user with another token', user(1, 1), user(1, 2), '/', false],
    ['another user with a token of the same id', user(1, 1), user(2, 1), '/', true],
    ['its peer', peer(1), peer(1), '/', false],
    ['another peer', peer(1), peer(2), '/', true],
    ['a peer with the id of its user', user(1, 1), peer(1), '/', true],
    ['a user at its address', '203.0.113.7', user(1, 1), '/', true],
    ['its address', '203.0.113.7', '203.0.113.7', '/', false],
    ['its customer of IPv6', '2001:db8:0:1::7', '2001:db8:0:1::8', '/', false],
    ['another address', '203.0.113.7', '203.0.113.8', '/', true],
    ['a health check', '203.0.113.7', '203.0.113.7', '/healthz', true],
  ])('%s is answered meanwhile, or not, and afterwards', async (_who, first, second, path, meanwhile) => {
    expect(await isAnswered(path, first, second)).toEqual([meanwhile, true]);
  });
});

test('of requests whose clients left while they waited, nothing stays in memory', async () => {
  const waiting = await openWaiting();
  const { plane, token } = waiting;
  onTestFinished(() => closePlane(plane));
  const network = await makeNetwork(plane, token);
  const path = `/api/networks/${network}`;
  const etag = (await plane.call('GET', path, { token })).headers.get('etag');
  const replies: WeakRef<ServerResponse>[] = [];
  const note = (message: unknown) => {
    const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
    if (request.url === path) replies.push(new WeakRef(response));
  };
  subscribe('http.server.request.start', note);
  onTestFinished(() => void unsubscribe('http.server.request.start', note));
  const { hostname, port } = new URL(plane.url);
  for (let count = 0; count < 3; count += 1) {
    const socket = connect(Number(port), hostname);
    const headers = [`Authorization: Bearer ${token}`, `If-None-Match: ${etag}`, 'Prefer: wait=60'];
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n${headers.join('\r\n')}\r\n\r\n`);
    await untilWaiting(waiting, network);
    socket.destroy();
    await untilWaiting(waiting, network, 0);
  }
  expect(replies).toHaveLength(3);
  await eventually('all are garbage', () => {
    collectGarbage();
    return replies.every((reply) => reply.deref() === undefined);
  });
});

test('a list that many do not read is one in memory', async () => {
  const plane = await openLarge();
  const tokens = await Promise.all(Array.from({ length: 12 }, () => plane.signIn('viewer')));
  await plane.call('GET', '/api/networks', { token: tokens[0] });
  const before = process.memoryUsage().arrayBuffers;
  for (const token of tokens) await ask(plane, token);
  // The rest is garbage, and what the clients of this process have received.
  await eventually('one is left', () => {
    collectGarbage();
    return process.memoryUsage().arrayBuffers - before < 4 * bytes;
  });
});
