import { describe, expect, test } from 'vitest';
import { AttemptFailed, type AttemptOutcome } from '../../../src/api/http/attempt-failed.ts';
import { isGatewayFailure, isTimeoutLike } from '../../../src/api/http/client.ts';
import { controlPlaneAt } from '../../../src/api/http/tls-server.ts';

const errorOf = (code: string) => Object.assign(new Error('text of undici'), { code });
const server = controlPlaneAt('https://cp.example.net', null);

/** Each way in which no connection comes about: whether something is heard, and the words that a user sees. */
const unconnected: [string, boolean, string, RegExp][] = [
  ['ENOENT', false, 'the socket does not exist (ENOENT)', /check the path/],
  ['EACCES', false, 'this user may not connect (EACCES)', /check its mode/],
  ['ECONNREFUSED', true, 'the connection was refused (ECONNREFUSED)', /check its address and port, and that it runs/],
  ['ENOTFOUND', false, 'its name does not resolve (ENOTFOUND)', /check its spelling/],
  ['EAI_AGAIN', false, 'the resolver does not answer (EAI_AGAIN)', /resolvers of this host/],
  ['EHOSTUNREACH', false, 'there is no route to the host (EHOSTUNREACH)', /routes of this host/],
  ['ENETUNREACH', false, 'its network is unreachable (ENETUNREACH)', /routes of this host/],
  ['ETIMEDOUT', false, 'the connection timed out (ETIMEDOUT)', /no firewall is in between/],
  ['UND_ERR_CONNECT_TIMEOUT', false, 'no connection within 10 seconds', /no firewall is in between/],
  ['EMFILE', false, 'the connection failed (EMFILE)', /try again, and check this host with "cpn doctor"/],
];

describe('a connection that does not come about', () => {
  test.each(unconnected)(
    'by %s sent nothing, and is tried again but where this user may not',
    (code, heard, problem, remedy) => {
      for (const at of [server, null, undefined]) {
        const { message, outcome } = AttemptFailed.from(errorOf(code), true, at);
        expect(message).toBe(problem);
        expect(outcome).toMatchObject({
          retry: code !== 'EACCES',
          sent: false,
          perhapsDone: false,
          heard,
          closed: false,
        });
        expect(outcome.remedy).toMatch(remedy);
      }
    },
  );

  test('by a reset is one of TLS where TLS was tried', () => {
    const reset = errorOf('ECONNRESET');
    const outcome = { retry: true, sent: false, perhapsDone: false, heard: true };
    expect(AttemptFailed.from(reset, true, server).outcome).toMatchObject(outcome);
    expect(AttemptFailed.from(reset, true, server).message).toContain('TLS handshake');
    expect(AttemptFailed.from(reset, true, null).outcome).toMatchObject(outcome);
    expect(AttemptFailed.from(reset, true, null).message).not.toContain('TLS');
  });
});

describe('a connection that ends', () => {
  test.each([
    ['ECONNRESET', true, true],
    ['UND_ERR_SOCKET', false, true],
    ['ETIMEDOUT', false, false],
    ['EPIPE', false, false],
  ])('by %s may have carried the request, and is tried again', (code, heard, closed) => {
    for (const at of [server, null, undefined]) {
      const { outcome } = AttemptFailed.from(errorOf(code), false, at);
      expect(outcome).toEqual({
        ...{ retry: true, sent: true, perhapsDone: true, heard, closed },
        remedy: expect.stringMatching(at === null && closed ? /serves https, set --api to an https/ : /./),
      });
      if (at !== null) expect(outcome.remedy).not.toContain('https');
    }
  });

  test.each([
    ['HTTPParserError', 'HPE_INVALID_CONSTANT'],
    ['Error', 'UND_ERR_HEADERS_OVERFLOW'],
  ])('with what is no HTTP (%s, %s) is not tried again, and did nothing', (name, code) => {
    for (const [at, remedy] of [
      [server, /address and port are those of the control plane/],
      [null, /set --api to an https/],
    ] as const) {
      const { message, outcome } = AttemptFailed.from(Object.assign(errorOf(code), { name }), false, at);
      expect(message).toBe('the reply is not HTTP');
      expect(outcome).toMatchObject({ retry: false, sent: true, perhapsDone: false, heard: true });
      expect(outcome.remedy).toMatch(remedy);
    }
  });

  test('has none of the text of other programs in its message, and no cause', () => {
    for (const isUnconnected of [true, false]) {
      const failed = AttemptFailed.from(errorOf('X'), isUnconnected, server);
      expect([failed.message, failed.cause]).toEqual(['the connection failed (X)', undefined]);
    }
  });
});

describe('a gateway', () => {
  const outcome = (fields: Partial<AttemptOutcome>): AttemptOutcome => {
    return { retry: true, sent: true, perhapsDone: true, heard: true, ...fields };
  };

  test.each<[string, Partial<AttemptOutcome>, boolean, boolean]>([
    ['a closed connection', { closed: true }, true, true],
    ['no connection', { sent: false, closed: false }, false, false],
    ['a 408', { status: 408 }, false, true],
    ['a 429', { status: 429 }, false, false],
    ['a 500', { status: 500 }, true, false],
    ['a 501', { status: 501 }, true, false],
    ['a 502', { status: 502 }, true, true],
    ['a 503', { status: 503 }, true, true],
    ['a 504', { status: 504 }, true, true],
    ['a 599', { status: 599 }, true, false],
    ['a 503 with its reason', { status: 503, busy: true }, false, false],
  ])('that sends %s may have failed, or ended a wait, as it may', (_, fields, isFailure, isTimeout) => {
    expect([isGatewayFailure(outcome(fields)), isTimeoutLike(outcome(fields))]).toEqual([isFailure, isTimeout]);
  });
});
