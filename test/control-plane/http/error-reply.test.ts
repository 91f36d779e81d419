import { Writable } from 'node:stream';
import { fastify } from 'fastify';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import {
  CannotListen,
  Conflict,
  Disconnected,
  Forbidden,
  InvalidRequest,
  MethodNotAllowed,
  NetworkDeleted,
  NotFound,
  OutcomeUnknown,
  PreconditionFailed,
  TooManyRequests,
  Unauthenticated,
  Unavailable,
  UnsupportedEncoding,
} from '../../../src/control-plane/errors.ts';
import { sendError } from '../../../src/control-plane/http/error-reply.ts';

/** The reply to a request that fails with this error, and the levels of its lines in the log. */
async function replyTo(error: unknown, config: { isHealthCheck?: boolean } = {}) {
  const lines: { level: number; msg: string; reqId: string }[] = [];
  const sink = new Writable({
    write: (chunk, _encoding, done) => {
      lines.push(JSON.parse(String(chunk)));
      done();
    },
  });
  const app = fastify({ loggerInstance: pino({ level: 'trace' }, sink) });
  app.setErrorHandler((thrown, request, reply) => sendError(thrown, request, reply));
  app.get('/', { config: { access: 'anyone', ...config } }, () => {
    throw error;
  });
  const { statusCode, headers, body } = await app.inject('/');
  await app.close();
  const logged = lines.filter(({ msg }) => msg.startsWith('request ') && !/incoming|completed/.test(msg));
  return { status: statusCode, headers, body: JSON.parse(body), logged: logged.map(({ level }) => level) };
}

const [debug, warn, failure] = [20, 40, 50];

describe('the reply to', () => {
  test.each<[string, Error, number, object, readonly number[]]>([
    ['a broken rule', new InvalidRequest({ name: ['is required'] }), 422, {}, []],
    ['no credential', new Unauthenticated('who'), 401, { 'www-authenticate': 'Bearer' }, []],
    ['no right', new Forbidden('may not'), 403, {}, []],
    ['what is not there', new NotFound('peer'), 404, {}, []],
    ['another method', new MethodNotAllowed('PUT', ['GET', 'HEAD']), 405, { allow: 'GET, HEAD' }, []],
    ['a contradiction', new Conflict('in it already'), 409, {}, []],
    ['a deleted network', new NetworkDeleted(7, 'n'), 410, { 'cache-control': 'no-store' }, []],
    ['a listed peer', new PreconditionFailed('listed'), 412, {}, []],
    ['a compressed body', new UnsupportedEncoding('gzip'), 415, { 'accept-encoding': 'identity' }, []],
    ['a limit', new TooManyRequests('logins', 7), 429, { 'retry-after': '7' }, []],
    ['a client that left', new Disconnected(), 499, {}, []],
    ['a full disk', new Unavailable('full', 3, new Error('cause')), 503, { 'retry-after': '3' }, [warn]],
    ['a lost commit', new OutcomeUnknown(new Error('lost')), 504, {}, [failure]],
  ])('%s has its status, its headers and its reason', async (_what, error, status, headers, logged) => {
    const reply = await replyTo(error);
    expect([reply.status, reply.headers, reply.logged]).toEqual([status, expect.objectContaining(headers), logged]);
    expect(reply.body.message).toBe(error.message);
  });

  test('a broken rule names each field, and that to a deleted network names it', async () => {
    const fields = { name: ['is required', 'must be short'], routes: ['is too long'] };
    expect((await replyTo(new InvalidRequest(fields))).body.errors).toEqual(fields);
    expect((await replyTo(new NetworkDeleted(7, 'n'))).body.deleted).toEqual({ id: 7, nonce: 'n' });
  });

  test('a fault is a 500 that reveals nothing, and is in the log', async () => {
    const reply = await replyTo(new TypeError('secret of x'));
    expect([reply.status, reply.logged]).toEqual([500, [failure]]);
    expect(JSON.stringify(reply.body)).not.toContain('secret');
    // The driver of a database has a connection of its own to lose.
    expect((await replyTo(Object.assign(new Error('reset'), { code: 'ECONNRESET' }))).status).toBe(500);
  });

  test('a health check that fails is in the log at debug level: a load balancer makes one every few seconds', async () => {
    expect((await replyTo(new Unavailable('away'), { isHealthCheck: true })).logged).toEqual([debug]);
  });
});

test.each([
  ...['EACCES', 'EPERM', 'EINVAL', 'EAFNOSUPPORT', 'ENOTSOCK'].map((code) => [code, false] as const),
  ...['EADDRINUSE', 'EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN'].map((code) => [code, true] as const),
])('an address at which the control plane cannot listen for %s may pass: %s', (code, passes) => {
  const error = new CannotListen('192.0.2.1', 443, Object.assign(new Error(code), { code }));
  expect([error.isRetryable, error.message]).toEqual([
    passes,
    `cannot listen on 192.0.2.1 port 443: ${code}; choose another with --listen`,
  ]);
});
