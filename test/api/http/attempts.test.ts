import { createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { Reply as Answer, Call } from '../../../src/api/http/attempt.ts';
import { HttpClient } from '../../../src/api/http/client.ts';
import type { ClientOptions } from '../../../src/api/http/client-options.ts';
import type { Unreachable } from '../../../src/core/errors/index.ts';
import { parseProxy } from '../../../src/core/net/proxy.ts';
import { failureOf } from '../samples.ts';
import { hungUp, json, listen, type Reply, serve } from '../server.ts';

const usual: Call = { what: 'the call', method: 'GET', path: '/api/x', repeatable: true, answered: true };
const done = json(200, {});

/** A client with a clock that only its pauses and its replies put forward: each reply by so many seconds. */
function clientOf(url: string, elapse: { ms: number }, options: ClientOptions = {}) {
  const sleeps: number[] = [];
  const sleep = async (ms: number) => {
    sleeps.push(ms);
    elapse.ms += ms;
  };
  const clock = { monotonic: () => elapse.ms, wall: () => Date.parse('2026-03-01T12:00:00.500Z') + elapse.ms, sleep };
  return { client: new HttpClient({ url, insecureHttp: true }, { clock, random: () => 0, ...options }), sleeps };
}

/** Makes a call to which these replies come, each after so many seconds. */
async function call(
  replies: readonly (Reply | [number, Reply])[],
  fields: Partial<Call> = {},
  options: ClientOptions = {},
) {
  const elapse = { ms: 0 };
  const { url, asked } = await serve(
    ...replies.map((each): Reply => {
      const [seconds, reply] = typeof each === 'function' ? [0, each] : each;
      return (...given) => {
        elapse.ms += seconds * 1000;
        reply(...given);
      };
    }),
  );
  const { client, sleeps } = clientOf(url, elapse, options);
  const [outcome] = await Promise.allSettled([client.call({ ...usual, ...fields })]);
  const { value, reason } = outcome as { value?: Answer; reason?: Unreachable };
  return { answer: value, failure: reason, asked, sleeps, url };
}

describe('a call', () => {
  test('is made seven times at most, with pauses that grow up to eight seconds', async () => {
    const long = { deadlineMs: 3_600_000, random: () => 1 };
    const { asked, sleeps } = await call([json(500, {})], {}, long);
    expect([asked.length, sleeps]).toEqual([7, [500, 1000, 2000, 4000, 8000, 8000]]);
    expect((await call([json(500, {})], { attempts: 2 }, long)).asked).toHaveLength(2);
  });

  test.each([
    [29, 2],
    [30, 1],
    [31, 1],
  ])('is not repeated after its thirty seconds: by %i s of a pause', async (seconds, requests) => {
    const { asked } = await call([json(503, {}, { 'retry-after': String(seconds) }), done]);
    expect(asked).toHaveLength(requests);
  });

  test('counts its attempts and pauses together', async () => {
    const busy = json(503, {}, { 'retry-after': '10' });
    expect((await call([busy, busy, done])).asked).toHaveLength(3);
    const { asked, failure } = await call([busy, busy, busy, done]);
    expect([asked.length, failure?.message]).toEqual([
      3,
      expect.stringContaining('no time is left for another attempt'),
    ]);
    expect((await call([[25, json(503, {}, { 'retry-after': '4' })], done])).asked).toHaveLength(2);
    expect((await call([[26, json(503, {}, { 'retry-after': '4' })], done])).asked).toHaveLength(1);
  });

  test('that is given up has what its caller goes on by', async () => {
    const late = { deadlineMs: 1_000 };
    const { failure } = await call([json(429, {}, { 'retry-after': '40' })], {}, late);
    expect(failure).toMatchObject({ retryAfterMs: 40_000, delivered: true, heard: true, lasting: false });
    expect((await call([json(503, {})], {}, late)).failure).toMatchObject({ retryAfterMs: null });
    const { url } = await listen(createServer((socket) => socket.end('SSH-2.0-x\r\n')));
    const other = await failureOf(clientOf(url, { ms: 0 }).client.call(usual));
    expect(other).toMatchObject({ lasting: true, delivered: true, heard: true });
  });

  test('that once was sent was delivered, though the last attempt found no connection', async () => {
    for (const status of [500, 503]) {
      const server = createServer((socket) => {
        socket.once('data', () => {
          server.close();
          socket.end(`HTTP/1.1 ${status} No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
        });
      });
      const { url } = await listen(server);
      const failure = await failureOf(clientOf(url, { ms: 0 }, { attempts: 2 }).client.call(usual));
      expect(failure).toMatchObject({ name: 'Unreachable', delivered: true, message: /ECONNREFUSED/ });
    }
  });

  test('that may have been carried out stays so, whatever comes then', async () => {
    const refused = await call([hungUp, json(503, {}), json(403, { message: 'used up' })]);
    expect(refused.failure).toMatchObject({ name: 'Refused', repeated: true });
    const remove = { method: 'DELETE', answered: false } as const;
    expect((await call([hungUp, json(503, {}), json(404, {})], remove)).answer?.status).toBe(404);
    expect((await call([json(503, {}), json(404, {})], remove)).failure).toMatchObject({
      status: 404,
      repeated: false,
    });
  });

  test('has the hint of its own before that of its client, and that before the usual one', async () => {
    const options = { remedies: { 403: 'of the client', 404: 'of the client' } };
    const remedies = { 403: 'of the call' };
    const said = async (status: number) => (await call([json(status, {})], { remedies }, options)).failure?.message;
    expect(await said(403)).toMatch(/; of the call$/);
    expect(await said(404)).toMatch(/; of the client$/);
    expect(await said(422)).toMatch(/; check the values of the command$/);
  });

  test('names no query in its messages', async () => {
    const { failure, url } = await call([json(200, [], { 'content-type': 'text/plain' })], { path: '/api/x?q=canary' });
    expect(failure?.message).toContain(`the reply from ${url}/api/x `);
    expect(failure?.message).not.toContain('canary');
  });

  test('shows no credentials of its proxy, should a reply repeat them', async () => {
    const { url } = await serve(json(422, { message: 'no user:hunter2-canary' }));
    const proxy = parseProxy(url.replace('//', '//user:hunter2-canary@'), '--proxy');
    const client = new HttpClient({ url: 'http://cp.example.net', insecureHttp: true, proxy }, {});
    const { message } = await failureOf(client.call(usual));
    expect(message).toContain('(422)');
    expect(message).not.toContain('canary');
  });
});

describe('the words about a 429', () => {
  const said = async (headers: Record<string, string>, sendDate = true) => {
    const reply: Reply = (response, asked) => {
      response.sendDate = sendDate;
      json(429, {}, headers)(response, asked);
    };
    return /; (try again .*)$/.exec((await call([reply], { attempts: 1 })).failure?.message ?? '')?.[1];
  };

  test.each([
    ['0', 'in 0 s'],
    ['7', 'in 7 s'],
    ['299', 'in 299 s'],
    ['300', 'later'],
    ['86400', 'later'],
    ['soon', 'later'],
  ])('with Retry-After: %s are to try again %s', async (value, when) => {
    expect(await said({ 'retry-after': value })).toBe(`try again ${when}`);
  });

  test('are never about a time that is too early', async () => {
    // By the clock of this host, half a second of which is over.
    expect(await said({ 'retry-after': 'Sun, 01 Mar 2026 12:00:07 GMT' }, false)).toBe('try again in 7 s');
  });
});

describe('a reply to a call that may wait', () => {
  const wait = { seconds: 20 };

  test.each([
    ['wait=20', true],
    [' Wait = 20', true],
    ['WAIT=0', true],
    ['respond-async', false],
    ['await=20', false],
    ['no wait=20', false],
    ['', false],
  ])('with Preference-Applied: %j has waited: %j', async (header, waited) => {
    expect((await call([json(200, {}, { 'preference-applied': header })], { wait })).answer?.waited).toBe(waited);
  });

  test.each<[string, readonly [number, Reply][], object | undefined, boolean]>([
    ['a long time', [[5, done]], wait, true],
    ['a short time', [[4.9, done]], wait, false],
    ['as long as was asked for', [[2, done]], { seconds: 2 }, true],
    ['as long, without a wait', [[9, done]], undefined, false],
    ['as long, without a preference', [[9, done]], { seconds: null }, false],
    [
      'a long time with the attempts before it',
      [
        [4, json(500, {})],
        [4, done],
      ],
      wait,
      false,
    ],
  ])('after %s has waited or not', async (_, replies, given, waited) => {
    const fields = given === undefined ? {} : { wait: given as { seconds: number } };
    expect((await call(replies, fields)).answer?.waited).toBe(waited);
  });

  test('that no connection came about for was no wait that ended', async () => {
    const { port } = await listen(createServer(() => {}));
    const client = new HttpClient({ url: `https://127.0.0.1:${port}`, insecureHttp: false }, { deadlineMs: 20 });
    const failure = await failureOf(client.call({ ...usual, wait: { seconds: 0.02 } }));
    expect(failure).toMatchObject({ name: 'Unreachable', delivered: false, waitEnded: false });
  });
});

test('a header that can be spared is left out after two failures of a gateway, and after no other', async () => {
  const sparing = { headers: { 'a-im': 'x', 'if-none-match': '"1"' }, dispensable: ['a-im'] };
  const limited = json(429, {});
  const [bad, busy] = [json(502, {}), json(503, { message: 'busy' })];
  for (const [failures, reduced] of [
    [[bad, bad], true],
    [[bad, limited, hungUp], true],
    [[bad], false],
    [[limited, limited, limited], false],
    [[busy, busy, bad], false],
  ] as const) {
    const { asked, answer } = await call([...failures, done], sparing);
    expect([asked.at(-1)?.headers['a-im'], answer?.isReduced]).toEqual(reduced ? [undefined, true] : ['x', undefined]);
    expect(asked.map(({ headers }) => headers['if-none-match'])).toEqual(asked.map(() => '"1"'));
  }
});
